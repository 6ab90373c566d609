"""Waiting for what another process or thread does."""

import time
import urllib.request
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(reached: Callable[[], T], *, seconds: float = 600.0) -> T:
    """The first true value of ``reached``; an assertion fails where there is none in time."""
    deadline = time.monotonic() + seconds
    while not (value := reached()):
        assert time.monotonic() < deadline, f"it did not happen in {seconds:g} s"
        time.sleep(0.05)
    return value


def answers(url: str) -> bool:
    """Whether a server is up."""
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True
