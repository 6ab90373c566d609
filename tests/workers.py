"""How tests are dealt to workers: those of a file together, for the fixtures that they share, and all of the sandbox's.

The sandbox's tests measure seconds and memory, look for processes that were left, and leave traces in ``/tmp`` and
``/dev/shm`` where a protection is switched off on purpose: side by side they would disturb each other. They take
longest, so they come first.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_SANDBOX = "tests/sandbox/"


class BySharedState(LoadFileScheduling):
    """One worker for each file, in their order, and one for the folder whose tests share the machine."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the number of a file's tests says nothing of how long they take

    def _split_scope(self, nodeid: str) -> str:
        return _SANDBOX if nodeid.startswith(_SANDBOX) else super()._split_scope(nodeid)
