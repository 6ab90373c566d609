"""What happens to a row, free of any framework: records, images, ledger, sources, policies, recipes, checks, export."""
