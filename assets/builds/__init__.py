"""Builds of a command: its jobs in this process, and those that it waits for."""
