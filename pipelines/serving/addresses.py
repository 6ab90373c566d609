"""Where a server listens, and where it is asked."""

from __future__ import annotations

import socket

from pipelines.serving.faults import ServingFault

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses to listen on that cannot be asked, and the one to ask instead."""


def url_of(host: str, port: int) -> str:
    """Where a server that listens on ``host`` answers, as seen from this machine."""
    asked = EVERYWHERE.get(host, host)
    return f"http://{f'[{asked}]' if ':' in asked else asked}:{port}"


def free_port(host: str, wanted: int | None = None) -> int:
    """``wanted``, or a free one: opened and closed again. Raises ``ServingFault``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a closed connection's last minute is no reason
        try:
            probe.bind((host, wanted or 0))
        except OSError as fault:
            raise ServingFault(
                f"cannot listen on {host} port {wanted or 0} ({fault.strerror}); leave --port out for a free one"
            ) from fault
        return int(probe.getsockname()[1])
