"""Addresses of servers on this machine, and free ports."""

import socket

from darkroom.pipelines.processes.process_sessions import ProcessError

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses to listen on, and the one to connect to instead."""


def url_of(host: str, port: int) -> str:
    """The URL on this machine of a server that listens on ``host``."""
    address = WILDCARDS.get(host, host)
    return f"http://{f'[{address}]' if ':' in address else address}:{port}"


def free_port(host: str, port: int | None = None) -> int:
    """``port`` if it can be opened, or a free one. Raises ``ProcessError``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a connection in TIME_WAIT does not matter
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            raise ProcessError(
                f"cannot listen on {host} port {port or 0} ({error.strerror}); omit --port for a free one"
            ) from error
        return int(probe.getsockname()[1])
