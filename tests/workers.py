"""How tests are dealt to workers: those of a file together, for the fixtures that they share, and those of some files.

The sandbox's tests measure seconds and memory, look for processes that were left, and leave traces in ``/tmp`` and
``/dev/shm`` where a protection is switched off on purpose: side by side they would disturb each other. They take
longest, so they come first. Those of ``tests/e2e/annotation`` share a server, and ``tests/e2e/test_demo*.py`` a demo.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_TOGETHER = ("tests/sandbox/", "tests/e2e/annotation/", "tests/e2e/test_demo")
"""Beginnings of paths."""


class BySharedState(LoadFileScheduling):
    """One worker for each file, in their order, and one for files that share the machine, a server or a demo."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the number of a file's tests says nothing of how long they take

    def _split_scope(self, nodeid: str) -> str:
        shared = next((start for start in _TOGETHER if nodeid.startswith(start)), None)
        return shared or super()._split_scope(nodeid)
