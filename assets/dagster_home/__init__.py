"""Dagster in DAGSTER_HOME: its settings, its history, its daemon."""
