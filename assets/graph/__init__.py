"""The assets, their checks, partitions, jobs and resources."""
