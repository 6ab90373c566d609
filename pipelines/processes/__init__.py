"""Programs that are started beside a command: supervisor and job directory, processes, ports, virtual environments."""
