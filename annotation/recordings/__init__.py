"""Recorded campaigns: written, imported, replayed without a server."""
