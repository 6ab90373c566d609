"""Programs that are started beside a command: their processes, ports and virtual environments."""
