"""How tests are dealt to workers: those of a file together, for the fixtures that they share, and those of two folders.

The sandbox's tests measure seconds and memory, look for processes that were left, and leave traces in ``/tmp`` and
``/dev/shm`` where a protection is switched off on purpose: side by side they would disturb each other. They take
longest, so they come first. Those of ``tests/e2e/annotation`` share a server.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_TOGETHER = ("tests/sandbox/", "tests/e2e/annotation/")


class BySharedState(LoadFileScheduling):
    """One worker for each file, in their order, and one for each folder whose tests share the machine or a server."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the number of a file's tests says nothing of how long they take

    def _split_scope(self, nodeid: str) -> str:
        folder = next((folder for folder in _TOGETHER if nodeid.startswith(folder)), None)
        return folder or super()._split_scope(nodeid)
