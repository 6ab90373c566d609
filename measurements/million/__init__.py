"""A million rows through every stage that looks at all rows: CPU time per row and peak memory."""
