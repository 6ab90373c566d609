"""A port for a server that opens it later."""

from __future__ import annotations

import random
import socket

_PORTS = range(20_000, 30_000)
"""Below those that the kernel gives to whoever asks for any: it gives none of them away before the server is up. Ray
keeps those from 10,002 to 19,999 for its workers."""

_CHANCE = random.SystemRandom()
"""A training seeds Python's own: two test processes after one seed would take the same ports."""


def free_port() -> int:
    """A free port of the loopback interface, at random."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", _CHANCE.choice(_PORTS)))
            except OSError:
                continue
            return int(probe.getsockname()[1])
