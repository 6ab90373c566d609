"""Metadata on the assets' pages."""
