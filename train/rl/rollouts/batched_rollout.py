"""Rollouts of a model in training, a whole batch at once, through the one loop (``pipelines.generation.rollout``).

Every rollout is a coroutine that requests its next turn. When all active rollouts wait for the model, their turns are
generated in one batch. Code runs meanwhile: it starts as soon as it is complete, while other turns of the batch are
still generated. Batches and the order of their rows are the same in every run: a seed determines the rollouts.

A transcript holds a rollout as tokens. Tokens are never decoded and encoded again: the sampled tokens are the trained
ones.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PIL import Image

from pipelines.generation.rollout import Rollout, rollout
from pipelines.models.messages import Part, Text
from pipelines.models.policies.base import Completion, CompletionRequest, PolicyIdentity
from pipelines.models.protocols import PROTOCOLS, Protocol
from pipelines.models.tasks import Task
from pipelines.publishing.layouts.text import plain
from pipelines.records import Observation, Usage
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.verification.repetition import Repetition
from train.rl.methods.base import RolloutOutcome
from train.rl.rollouts.environment import SandboxEnvironment
from train.rl.rollouts.sampling import Ending

TURN_END = "<|im_end|>"
_IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"


@dataclass(slots=True)
class Transcript:
    """``mask`` is 1 for tokens that the model wrote. ``images`` are what the sandbox showed, in order."""

    prompt: list[int]
    ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    """Of the tokens, where the engine that wrote them gave any; 0.0 for the sandbox's, None for greedy ones."""
    images: list[Image.Image] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    """What the model wrote, turn by turn."""

    @property
    def n_written(self) -> int:
        """Tokens that the model wrote."""
        return sum(self.mask)

    def write(self, ids: Sequence[int], text: str, logprobs: Sequence[float | None] | None) -> None:
        """Adds a turn of the model's."""
        self._add(ids, 1, logprobs or [0.0] * len(ids))
        self.turns.append(text)

    def show(self, ids: Sequence[int], images: Sequence[Image.Image]) -> None:
        """Adds an observation."""
        self._add(ids, 0, [0.0] * len(ids))
        self.images += images

    def _add(self, ids: Sequence[int], written: int, logprobs: Sequence[float | None]) -> None:
        self.ids += ids
        self.mask += [written] * len(ids)
        self.logprobs += logprobs


def observation_tokens(processor: Any, parts: Sequence[Part], images: Sequence[Image.Image], *, last: int) -> list[int]:
    """An observation as a user turn, up to where the model writes again; images as runs of image tokens.

    The turn before it is ended first where the model did not end it itself (``last`` is its last token).
    """
    tokenizer = processor.tokenizer
    ended = last == tokenizer.convert_tokens_to_ids(TURN_END)
    content = "".join(plain(part.text) if isinstance(part, Text) else _IMAGE for part in parts)
    text = f"{'' if ended else TURN_END}\n<|im_start|>user\n{content}{TURN_END}\n<|im_start|>assistant\n"
    encoded = processor(text=[text], images=list(images)) if images else tokenizer([text])
    ids: list[int] = encoded["input_ids"][0]
    return ids


@dataclass(frozen=True, slots=True)
class GeneratedTurn:
    """A turn as an engine generated it."""

    ids: list[int]
    text: str
    ending: Ending
    logprobs: list[float | None] | None = None


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

    @property
    def protocol(self) -> Protocol:
        """The protocol of its row."""
        return PROTOCOLS[self.environment._row["protocol"]]

    def begin(self, code: str) -> None:
        """Starts complete code, unless the limit of rounds is reached."""
        if self.n_rounds < self.max_rounds:
            self.environment._begin(code)

    async def run(self, code: str) -> Observation:
        """The session of the loop."""
        if code == self.protocol.setup:  # the environment ran it when it opened the session
            return Observation("ok", "")
        self.n_rounds += 1
        return await self.environment._run(code)

    def outcome(self, played: Rollout) -> RolloutOutcome:
        """What rewards and metrics read of the finished rollout."""
        environment = self.environment
        return RolloutOutcome(
            question=environment._row["asked"],
            protocol=self.protocol.name,
            mode=self.task.mode,
            rollout=played,
            turns=tuple(self.transcript.turns),
            question_images=tuple(environment._row["images"]),
            pixels=dict(environment.pixels),
            n_tokens=self.transcript.n_written,
            seconds=environment.seconds,
            sandbox_error=environment.broken,
            n_over_limit=environment.n_over_limit,
        )


Write = Callable[[Sequence[ActiveRollout]], Sequence[GeneratedTurn]]
"""The next turn of each of these rollouts, in one batch."""


class ModelInTraining:
    """The policy of all rollouts of a batch."""

    def __init__(self, write: Write, *, processor: Any, max_tokens: int, shows_images: bool = True) -> None:
        """``max_tokens`` is the longest that a rollout may become after its prompt, observations included.

        Unless ``shows_images``, the model sees only the text of its observations; their record keeps the images.
        """
        self._write, self._processor, self._max_tokens = write, processor, max_tokens
        self._shows_images = shows_images
        self._players: dict[str, ActiveRollout] = {}
        self._waiting: list[tuple[ActiveRollout, asyncio.Future[Completion]]] = []
        self._n_going = 0
        self.seconds_writing = self.seconds_waiting = self._since = 0.0

    @property
    def waiting_share(self) -> float:
        """The proportion of the time spent waiting for code; code that runs while turns are generated causes none."""
        total = self.seconds_writing + self.seconds_waiting
        return self.seconds_waiting / total if total else 0.0

    @property
    def identity(self) -> PolicyIdentity:
        """Not on a ledger: the model changes at every step."""
        return PolicyIdentity("training", "in-training")

    @property
    def concurrency(self) -> int:
        """All rollouts of the batch."""
        return len(self._players)

    async def check(self) -> None:
        """Nothing can be missing."""

    async def close(self) -> None:
        """Nothing is held."""

    async def run_batch(self, players: Sequence[ActiveRollout], first: Sequence[GeneratedTurn]) -> list[Rollout]:
        """The rollouts, from their first turns on."""
        self._players = {player.task.trajectory_id: player for player in players}
        self._n_going = len(players)
        self._since = time.monotonic()
        going = [self._run_rollout(player, turn) for player, turn in zip(players, first, strict=True)]
        return list(await asyncio.gather(*going))

    async def write(self, turn: CompletionRequest) -> Completion:
        """The next turn of one rollout. Raises ``RowError`` (truncated_turn) when no token is left for it."""
        player = self._players[turn.task.trajectory_id]
        self._show(player, turn.rounds[-1].observation)
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._waiting.append((player, future))
        self._write_if_all_wait()
        return await future

    async def _run_rollout(self, player: ActiveRollout, first: GeneratedTurn) -> Rollout:
        try:
            return await rollout(
                player.task,
                policy=self,
                protocol=player.protocol,
                session=player,
                max_rounds=player.max_rounds,
                opening=add_turn(player, first),
            )
        except RowError as error:
            return Rollout((), "", "", Usage(), error)
        finally:
            self._n_going -= 1
            self._write_if_all_wait()

    def _show(self, player: ActiveRollout, observation: Observation) -> None:
        if not self._shows_images:
            observation = replace(observation, images=())
        images, transcript = player.environment._shown(observation), player.transcript
        ids = observation_tokens(self._processor, player.protocol.wrap(observation), images, last=transcript.ids[-1])
        if len(transcript.ids) + len(ids) >= self._max_tokens:
            raise RowError(
                Reason.TRUNCATED_TURN,
                f"no room for an observation of {len(ids)} tokens after {len(transcript.ids)} of {self._max_tokens}",
            )
        transcript.show(ids, images)

    def _write_if_all_wait(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_going:
            return
        # in the order of the batch, not of the ends of executions: a row's sampled tokens depend on its place
        places = {name: place for place, name in enumerate(self._players)}
        waiting = sorted(self._waiting, key=lambda entry: places[entry[0].task.trajectory_id])
        self._waiting = []
        start = time.monotonic()
        self.seconds_waiting += start - self._since
        written = self._write([player for player, _ in waiting])
        for (player, future), turn in zip(waiting, written, strict=True):
            try:
                future.set_result(add_turn(player, turn))
            except RowError as error:
                future.set_exception(error)
        self._since = time.monotonic()
        self.seconds_writing += self._since - start


def add_turn(player: ActiveRollout, turn: GeneratedTurn) -> Completion:
    """Adds a turn to its transcript. Raises ``RowError`` (truncated_turn) for one that was stopped in a circle."""
    player.transcript.write(turn.ids, turn.text, turn.logprobs)
    if turn.ending == "repetition":
        raise RowError(Reason.TRUNCATED_TURN, f"it goes in circles: {turn.text[-80:]!r}")
    return Completion(turn.text, finished=turn.ending != "full")
