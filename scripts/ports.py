"""A port for a server that opens it later."""

from __future__ import annotations

import random
import socket

_PORTS = range(15_000, 30_000)
"""Below those that the kernel gives to whoever asks for any: it gives none of them away before the server is up."""


def free_port() -> int:
    """A free port of the loopback interface, at random."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", random.choice(_PORTS)))
            except OSError:
                continue
            return int(probe.getsockname()[1])
