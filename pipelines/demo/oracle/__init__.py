"""The embedded policy: what it writes, by family, from the known truth."""
