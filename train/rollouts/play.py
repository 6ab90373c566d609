"""Rollouts of a model in training, all of a batch at once, through the one loop (``pipelines.rollout``).

Every rollout is a coroutine that asks the model for its next turn. When all that are still going wait for the model,
their turns are written together, in one batch. Programs run meanwhile: each starts as soon as it is complete, while
the others of the batch are still being written. Batches are the same in every run, and so is the order of their rows:
a seed gives the same rollouts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.policies.base import Completion, Identity, Turn
from pipelines.protocols import PROTOCOLS, Protocol
from pipelines.records import Observation, Usage
from pipelines.rejects import Reason, RowFault
from pipelines.rollout import Rollout, rollout
from pipelines.tasks import Task
from train.rollouts.environment import SandboxEnvironment
from train.rollouts.repetition import Repetition
from train.rollouts.sampling import Ending
from train.rollouts.transcript import Transcript, observation_tokens


@dataclass(frozen=True, slots=True)
class Written:
    """A turn as an engine gave it."""

    ids: list[int]
    text: str
    ending: Ending
    logprobs: list[float | None] | None = None


@dataclass(slots=True)
class Player:
    """One rollout: its sandbox, its tokens, and what is left for it to write."""

    environment: SandboxEnvironment
    task: Task
    transcript: Transcript
    max_rounds: int
    repetition: Repetition = field(default_factory=Repetition)
    n_rounds: int = 0

    @property
    def protocol(self) -> Protocol:
        """The protocol of its row."""
        return PROTOCOLS[self.environment._row["protocol"]]

    def begin(self, code: str) -> None:
        """Starts a program that is complete, unless no further round is allowed."""
        if self.n_rounds < self.max_rounds:
            self.environment._begin(code)

    async def run(self, code: str) -> Observation:
        """The session of the loop."""
        if code == self.protocol.setup:  # the environment ran it when it opened the session
            return Observation("ok", "")
        self.n_rounds += 1
        return await self.environment._run(code)


Write = Callable[[Sequence[Player]], Sequence[Written]]
"""The next turn of each of these rollouts, in one batch."""


@dataclass(slots=True)
class Clock:
    """Where the time of a batch went, in seconds. Programs that run while turns are written cost no waiting."""

    writing: float = 0.0
    waiting: float = 0.0

    @property
    def waiting_share(self) -> float:
        """Of all the time, what was spent waiting for programs."""
        total = self.writing + self.waiting
        return self.waiting / total if total else 0.0


class ModelInTraining:
    """The policy of all rollouts of a batch."""

    def __init__(self, write: Write, *, processor: Any, max_tokens: int) -> None:
        """``max_tokens`` is the longest that a rollout may become after its prompt, observations included."""
        self._write, self._processor, self._max_tokens = write, processor, max_tokens
        self._players: dict[str, Player] = {}
        self._waiting: list[tuple[Player, asyncio.Future[Completion]]] = []
        self._n_going = 0
        self.clock = Clock()
        self._since = 0.0

    @property
    def identity(self) -> Identity:
        """A model that changes at every step has no name on a ledger."""
        return Identity("training", "in-training")

    @property
    def concurrency(self) -> int:
        """All rollouts of the batch."""
        return len(self._players)

    async def check(self) -> None:
        """Nothing can be missing."""

    async def close(self) -> None:
        """Nothing is held."""

    async def play(self, players: Sequence[Player], first: Sequence[Written]) -> list[Rollout]:
        """The rollouts, from their first turns on."""
        self._players = {player.task.trajectory_id: player for player in players}
        self._n_going = len(players)
        self._since = time.monotonic()
        going = [self._one(player, said) for player, said in zip(players, first, strict=True)]
        return list(await asyncio.gather(*going))

    async def write(self, turn: Turn) -> Completion:
        """The next turn of one rollout. Raises ``RowFault`` (truncated_turn) when no token is left for it."""
        player = self._players[turn.task.trajectory_id]
        self._show(player, turn.rounds[-1].observation)
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiting.append((player, future))
        self._write_if_all_wait()
        return await future

    async def _one(self, player: Player, first: Written) -> Rollout:
        try:
            opening = completion(player, first)
            playing: Coroutine[Any, Any, Rollout] = rollout(
                player.task,
                policy=self,
                protocol=player.protocol,
                session=player,
                max_rounds=player.max_rounds,
                opening=opening,
            )
            return await playing
        except RowFault as fault:
            return Rollout((), "", "", Usage(), fault)
        finally:
            self._n_going -= 1
            self._write_if_all_wait()

    def _show(self, player: Player, seen: Observation) -> None:
        images = player.environment._shown(seen)
        transcript = player.transcript
        parts = player.protocol.wrap(seen)
        ids = observation_tokens(self._processor, parts, images, last=transcript.ids[-1])
        if len(transcript.ids) + len(ids) >= self._max_tokens:
            raise RowFault(
                Reason.TRUNCATED_TURN,
                f"no room for an observation of {len(ids)} tokens after {len(transcript.ids)} of {self._max_tokens}",
            )
        transcript.show(ids, images)

    def _write_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_going:
            return
        # in the order of the batch, not in that in which programs ended: what a row draws depends on its place
        places = {name: place for place, name in enumerate(self._players)}
        waiting = sorted(self._waiting, key=lambda one: places[one[0].task.trajectory_id])
        self._waiting = []
        start = time.monotonic()
        self.clock.waiting += start - self._since
        written = self._write([player for player, _ in waiting])
        for (player, future), said in zip(waiting, written, strict=True):
            try:
                future.set_result(completion(player, said))
            except RowFault as fault:
                future.set_exception(fault)
        self._since = time.monotonic()
        self.clock.writing += self._since - start


def completion(player: Player, said: Written) -> Completion:
    """Adds a turn to its transcript. Raises ``RowFault`` (truncated_turn) for one that was stopped in a circle."""
    player.transcript.write(said.ids, said.text, said.logprobs)
    if said.ending == "repetition":
        raise RowFault(Reason.TRUNCATED_TURN, f"it goes in circles: {said.text[-80:]!r}")
    return Completion(said.text, finished=said.ending != "full")
