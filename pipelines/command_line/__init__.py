"""Console, groups and errors of all commands."""
