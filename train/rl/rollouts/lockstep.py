"""Processes that share sharded weights take their turns together.

With FSDP or ZeRO-3 every turn that is generated is a collective operation, and the rollouts of one process may need
more turns than those of another. Before each turn all processes say whether they have one to write; one without writes
an empty one of a single token, until none has any. Without this the processes would wait for one another for ever.
"""

from collections.abc import Callable
from typing import Any

import torch


class Lockstep:
    """Counts the processes that have a turn to write; ``empty_turn`` generates one that is not read."""

    def __init__(self, accelerator: Any, empty_turn: Callable[[], None]) -> None:
        self._accelerator, self._empty_turn = accelerator, empty_turn

    def begin_turn(self) -> None:
        """Called before this process writes a turn."""
        self._anyone_writes(True)

    def finish(self) -> None:
        """Called when this process has no more turns to write; returns when no process has any."""
        while self._anyone_writes(False):
            self._empty_turn()

    def _anyone_writes(self, writes: bool) -> bool:
        count = torch.tensor(float(writes), device=self._accelerator.device)
        return bool(self._accelerator.reduce(count, reduction="sum").item())
