"""Judges of rollouts, and redlines: rules that need no judge."""
