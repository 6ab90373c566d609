"""Rollouts of a model in training, through the one loop (``darkroom.pipelines.generation.rollout``).

Every rollout is a coroutine that requests its next turn of a ``TurnWriter``: ``BatchedTurns`` writes the turns of all
rollouts together, ``vllm_engine.ServerTurns`` each by itself. Code runs meanwhile. A seed determines the rollouts,
however long code and requests take.
"""

import asyncio
import time
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from darkroom.pipelines.generation.rollout import Rollout, rollout
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, PolicyIdentity
from darkroom.pipelines.models.protocols import PROTOCOLS, Protocol
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Observation, Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.repetition import Repetition
from darkroom.train.rl.methods.base import RolloutOutcome
from darkroom.train.rl.rollouts.environment import SandboxEnvironment
from darkroom.train.rl.rollouts.transcript import GeneratedTurn, Transcript, observation_tokens


@dataclass(slots=True)
class ActiveRollout:
    """One rollout of a batch: its sandbox, tokens and remaining rounds."""

    environment: SandboxEnvironment
    task: Task
    transcript: Transcript
    max_rounds: int
    repetition: Repetition | None = field(default_factory=Repetition)
    """None: a rollout in circles goes on."""
    n_rounds: int = 0

    @classmethod
    def of(
        cls, environment: SandboxEnvironment, name: str, *, seed: int, max_rounds: int, repetition: Repetition | None
    ) -> "ActiveRollout":
        """A rollout on the row of ``environment``, from its prompt on; ``name`` tells it from others of the batch."""
        sample, mode = environment._row["asked"].sample, environment._row["mode"]
        task = Task(name, "training", sample, images=sample.images, hint={}, opening=(), seed=seed, mode=mode)
        return cls(environment, task, Transcript([]), max_rounds, repetition)

    @property
    def protocol(self) -> Protocol:
        return PROTOCOLS[self.environment._row["protocol"]]

    def begin(self, code: str) -> None:
        """Start complete code, unless the limit of rounds is reached."""
        if self.n_rounds < self.max_rounds:
            self.environment._begin(code)

    async def run(self, code: str) -> Observation:
        """Run code for the loop, of which this is the session."""
        if code == self.protocol.setup:  # the environment ran it when it opened the session
            return Observation("ok", "")
        self.n_rounds += 1
        return await self.environment._run(code)

    def outcome(self, finished: Rollout) -> RolloutOutcome:
        environment = self.environment
        return RolloutOutcome(
            question=environment._row["asked"],
            protocol=self.protocol.name,
            mode=self.task.mode,
            rollout=finished,
            turns=tuple(self.transcript.turns),
            question_images=tuple(environment._row["images"]),
            pixels=dict(environment.pixels),
            n_tokens=self.transcript.n_written,
            seconds=environment.seconds,
            sandbox_error=environment.broken,
            n_over_limit=environment.n_over_limit,
        )


class TurnWriter(typing.Protocol):
    """A generator of the turns of a batch of rollouts."""

    async def next_turn(self, active: ActiveRollout, seed: int) -> GeneratedTurn:
        """The turn after the transcript. ``seed`` is the turn's; writers with a seed for each batch ignore it."""

    def end(self) -> None:
        """Note that one rollout needs no more turns."""


class EngineClock:
    """Time that an engine wrote, and waited for code between two turns. Used ``with`` every request."""

    def __init__(self) -> None:
        self._n_writing, self._since = 0, 0.0
        self.seconds_writing = self.seconds_waiting = 0.0

    def __enter__(self) -> None:
        if not self._n_writing:
            now = time.monotonic()
            self.seconds_waiting += now - self._since if self._since else 0.0
            self._since = now
        self._n_writing += 1

    def __exit__(self, *_: object) -> None:
        self._n_writing -= 1
        if not self._n_writing:
            now = time.monotonic()
            self.seconds_writing += now - self._since
            self._since = now

    @property
    def waiting_share(self) -> float:
        """The proportion of the time in which nothing was written; code that runs meanwhile causes none."""
        total = self.seconds_writing + self.seconds_waiting
        return self.seconds_waiting / total if total else 0.0


class ModelInTraining:
    """The policy of all rollouts of a batch."""

    identity = PolicyIdentity("training", "in-training")
    """A name that is on no ledger: the model changes at every step."""
    concurrency = 1

    def __init__(self, turns: TurnWriter, *, processor: Any, max_tokens: int, shows_images: bool = True) -> None:
        """``max_tokens`` is the longest that a rollout may become after its prompt, observations included. Unless
        ``shows_images``, the model sees only the text of its observations; their record keeps the images."""
        self._turns, self._processor = turns, processor
        self._max_tokens, self._shows_images = max_tokens, shows_images
        self._by_id: dict[str, ActiveRollout] = {}

    async def check(self) -> None:
        """Do nothing: nothing can be missing."""

    async def close(self) -> None:
        """Do nothing: nothing is held."""

    async def run_batch(
        self, rollouts: Sequence[ActiveRollout], first: Sequence[GeneratedTurn | None] | None = None
    ) -> list[Rollout]:
        """Run the rollouts; from their ``first`` turns on, where these were written before. Raises what the writer of
        turns raises, after all rollouts have ended."""
        self._by_id = {active.task.trajectory_id: active for active in rollouts}
        pairs = zip(rollouts, first or [None] * len(rollouts), strict=True)
        tasks = [asyncio.ensure_future(self._run_rollout(active, turn)) for active, turn in pairs]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    async def write(self, turn: CompletionRequest) -> Completion:
        """Write the next turn of one rollout. Raises ``RowError`` (truncated_turn) when no token is left for it."""
        active = self._by_id[turn.task.trajectory_id]
        if turn.rounds:
            self._show(active, turn.rounds[-1].observation)
        return add_turn(active, await self._turns.next_turn(active, turn.seed))

    async def _run_rollout(self, active: ActiveRollout, first: GeneratedTurn | None) -> Rollout:
        protocol, limit = active.protocol, active.max_rounds
        try:
            opening = None if first is None else add_turn(active, first)
            finished = await rollout(
                active.task, policy=self, protocol=protocol, session=active, max_rounds=limit, opening=opening
            )
        except RowError as error:
            finished = Rollout((), "", "", Usage(), error)
        self._turns.end()
        return finished

    def _show(self, active: ActiveRollout, observation: Observation) -> None:
        if not self._shows_images:
            observation = replace(observation, images=())
        images, transcript = active.environment._shown(observation), active.transcript
        ids = observation_tokens(self._processor, active.protocol.wrap(observation), images, last=transcript.ids[-1])
        if len(transcript.ids) + len(ids) >= self._max_tokens:
            written = f"{len(transcript.ids)} of {self._max_tokens}"
            raise RowError(Reason.TRUNCATED_TURN, f"no room for an observation of {len(ids)} tokens after {written}")
        transcript.show(ids, images)


def add_turn(active: ActiveRollout, turn: GeneratedTurn) -> Completion:
    """Add a turn to its transcript. Raises ``RowError`` (truncated_turn) for one that was stopped in a circle."""
    active.transcript.write(turn.ids, turn.text, turn.logprobs)
    if turn.ending == "repetition":
        raise RowError(Reason.TRUNCATED_TURN, f"it goes in circles: {turn.text[-80:]!r}")
    return Completion(turn.text, finished=turn.ending != "full")


Write = Callable[[Sequence[ActiveRollout]], Sequence[GeneratedTurn]]
"""The next turn of each of these rollouts, in one batch."""


class BatchedTurns:
    """A ``TurnWriter`` that writes all turns together once every active rollout waits for the model; complete code
    starts meanwhile. Batches and the order of their rows are the same in every run, whichever code ends first."""

    def __init__(self, write: Write, rollouts: Sequence[ActiveRollout]) -> None:
        self._write, self._n_active = write, len(rollouts)
        self._order = {id(active): number for number, active in enumerate(rollouts)}
        self._waiting: list[tuple[ActiveRollout, asyncio.Future[GeneratedTurn]]] = []

    async def next_turn(self, active: ActiveRollout, seed: int) -> GeneratedTurn:
        """Wait for the batch, whose rows are sampled together; ``seed`` is not used."""
        future: asyncio.Future[GeneratedTurn] = asyncio.get_running_loop().create_future()
        self._waiting.append((active, future))
        self._write_if_all_wait()
        return await future

    def end(self) -> None:
        self._n_active -= 1
        self._write_if_all_wait()

    def _write_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_active:
            return
        # in the order of the batch, not of the ends of executions: a row's sampled tokens depend on its position
        waiting = sorted(self._waiting, key=lambda entry: self._order[id(entry[0])])
        self._waiting = []
        for (_, future), turn in zip(waiting, self._write([active for active, _ in waiting]), strict=True):
            future.set_result(turn)
