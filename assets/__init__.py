"""Dagster: what is materialised from what, and what the UI shows. Does no work of its own."""
