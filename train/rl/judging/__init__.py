"""Judges of rollouts, and code rules, which need no judge."""
