"""The next turns of a batch of rollouts, written together once all of them wait for the model.

Code starts as soon as it is complete, while other turns of the batch are still generated. Batches and the order of
their rows are the same in every run, whichever code ends first.
"""

import asyncio
from collections.abc import Callable, Sequence

from darkroom.train.rl.rollouts.active_rollout import ActiveRollout
from darkroom.train.rl.rollouts.transcript import GeneratedTurn

Write = Callable[[Sequence[ActiveRollout]], Sequence[GeneratedTurn]]
"""The next turn of each of these rollouts, in one batch."""


class BatchedTurns:
    """A ``TurnWriter`` that calls ``write`` with all active rollouts."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: list[tuple[ActiveRollout, asyncio.Future[GeneratedTurn]]] = []
        self._places: dict[int, int] = {}
        self._n_going = 0

    def start(self, players: Sequence[ActiveRollout]) -> None:
        """As in ``TurnWriter``."""
        self._places = {id(player): place for place, player in enumerate(players)}
        self._n_going = len(players)

    async def next_turn(self, player: ActiveRollout, seed: int) -> GeneratedTurn:
        """As in ``TurnWriter``; rows of a batch are sampled together, so ``seed`` is not used."""
        future: asyncio.Future[GeneratedTurn] = asyncio.get_running_loop().create_future()
        self._waiting.append((player, future))
        self._write_if_all_wait()
        return await future

    def end(self) -> None:
        """As in ``TurnWriter``."""
        self._n_going -= 1
        self._write_if_all_wait()

    def _write_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_going:
            return
        # in the order of the batch, not of the ends of executions: a row's sampled tokens depend on its place
        waiting = sorted(self._waiting, key=lambda entry: self._places[id(entry[0])])
        self._waiting = []
        written = self._write([player for player, _ in waiting])
        for (_, future), turn in zip(waiting, written, strict=True):
            future.set_result(turn)
