"""The embedded default: writes trajectories from the truth, so that the whole graph runs without a model or a key.

What it writes goes through the same protocol, sandbox and checks as any other policy's, and its rows say in their
provenance that the oracle wrote them. How a family's trajectories read is the recipe's business (``Recipe.script``).
"""

from __future__ import annotations

from collections.abc import Callable

from pipelines.policies.base import Completion, Identity, Turn

Script = Callable[[Turn], str]
"""The next turn, as text in the protocol; a pure function of the turn's task, rounds and seed."""


class OraclePolicy:
    """Writes what ``script`` says. ``revision`` is the digest of the script's source."""

    concurrency = 8

    def __init__(self, script: Script, *, revision: str) -> None:
        self._script = script
        self.identity = Identity("oracle", "oracle", revision)

    async def check(self) -> None:
        """Always there."""

    async def write(self, turn: Turn) -> Completion:
        """The script's next turn."""
        return Completion(self._script(turn))

    async def close(self) -> None:
        """Nothing to let go of."""
