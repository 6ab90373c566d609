"""Episodes: rollouts whose turns come from outside, one at a time, scored by a method in the end."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from darkroom.pipelines.generation.rollout import Rollout, rollout
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, PolicyIdentity
from darkroom.pipelines.records import Observation, Usage
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.services import ServiceError
from darkroom.pipelines.services.files import ObservationPart, numbered
from darkroom.pipelines.services.sessions import Registry
from darkroom.sandbox.errors import UserError, raised_as
from darkroom.train.rl.methods import Judges, Method
from darkroom.train.rl.methods.base import RolloutOutcome
from darkroom.train.rl.rollouts.active_rollout import ActiveRollout
from darkroom.train.rl.rollouts.environment import SandboxEnvironment
from darkroom.train.rl.rollouts.prompts import prompt
from darkroom.train.rl.rollouts.scoring import scored
from darkroom.train.rl.settings import GrpoSettings
from darkroom.train.runs import JudgeDown

MOST_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
"""Of all episodes' texts and images: a quarter of this machine's memory."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a turn: unless it is ``done``, ``parts`` is the observation."""

    done: bool
    parts: Sequence[ObservationPart] = ()
    images: tuple[Image.Image, ...] = ()
    status: str = ""


class Episode:
    """One rollout and its own policy, as a coroutine of the loop that waits for its turns. ``row``: a prompt."""

    identity = PolicyIdentity("client", "client")
    concurrency = 1

    def __init__(self, row: Mapping[str, Any], seed: int, max_rounds: int, *, shows_images: bool) -> None:
        self.row, sample = row, row["asked"].sample
        environment = SandboxEnvironment(seed)
        environment.reset(**row)
        name, turns_seed = f"{sample.sample_id}/{seed}", seed_from(sample.sample_id, seed)
        self.active = ActiveRollout.of(environment, name, seed=turns_seed, max_rounds=max_rounds, repetition=None)
        self.used = time.monotonic()
        self._shows_images = shows_images
        self._turns: asyncio.Queue[Completion] = asyncio.Queue()
        self._results: asyncio.Queue[StepResult] = asyncio.Queue()
        self._stepping = asyncio.Lock()
        self._finished: Rollout | None = None
        self.score: dict[str, Any] | None = None
        self.n_held = 0
        """Bytes of its texts and images, about."""
        self._running = asyncio.create_task(self._run())

    @property
    def busy(self) -> bool:
        return self._stepping.locked()

    @property
    def outcome(self) -> RolloutOutcome | None:
        return None if self._finished is None else self.active.outcome(self._finished)

    async def step(self, text: str, *, finished: bool) -> StepResult:
        """Take the model's next turn. ``finished``: False where a token limit cut it off. Raises ``ServiceError``:
        invalid_request after the end, infrastructure_failed where nothing can be executed."""
        async with self._stepping:
            if self._finished is not None:
                raise ServiceError("invalid_request", "the episode is over: reset a new one")
            self.used = time.monotonic()
            self._turns.put_nowait(Completion(text, finished))
            result = await self._result()
            self.used = time.monotonic()
            environment, turns = self.active.environment, self.active.transcript.turns
            shown = sum(3 * image.width * image.height for image in environment.pixels.values())
            self.n_held = shown + 4 * sum(map(len, turns))
            if result.done:
                await asyncio.to_thread(environment._end)
        if self.active.environment.error is not None:
            raise ServiceError("infrastructure_failed", str(self.active.environment.error))
        return result

    def settle(self, score: dict[str, Any]) -> None:
        """Keep the score, and nothing that it was made of."""
        self.score, self.row = score, {"sample_id": self.row["sample_id"]}
        self.n_held = 4 * len(score["answer"] or "")
        self._finished = Rollout((), "", "", Usage())
        self.active.transcript.turns.clear()
        self.active.environment.reset()

    async def _result(self) -> StepResult:
        waiting = asyncio.ensure_future(self._results.get())
        await asyncio.wait({waiting, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if self._running.cancelled():
            waiting.cancel()
            raise ServiceError("unknown_session", "the episode was ended during this step")
        if self._running.done() and (error := self._running.exception()):
            waiting.cancel()
            raise error
        return await waiting

    async def write(self, request: CompletionRequest) -> Completion:
        """Wait for the client's next turn; the result of the last one is its response until then."""
        if request.rounds:
            self._results.put_nowait(self._observed(request.rounds[-1].observation))
        turn = await self._turns.get()
        self.active.transcript.write((), turn.text, None)
        return turn

    async def check(self) -> None:
        """Do nothing: nothing can be missing."""

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        async with self._stepping:
            await asyncio.to_thread(self.active.environment.reset)

    async def _run(self) -> None:
        active = self.active
        self._finished = await rollout(
            active.task, policy=self, protocol=active.protocol, session=active, max_rounds=active.max_rounds
        )
        self._results.put_nowait(StepResult(done=True))

    def _observed(self, observation: Observation) -> StepResult:
        visible = observation if self._shows_images else replace(observation, images=())
        images = tuple(self.active.environment._shown(visible))
        return StepResult(False, numbered(self.active.protocol, visible), images, observation.status)


class Episodes:
    """Episodes over one dataset's rows: the ``registry`` of those that are open."""

    def __init__(
        self, rows: Any, settings: GrpoSettings, method: Method, judges: Judges, *, most_open: int, idle_seconds: float
    ) -> None:
        """``rows`` are ``darkroom.train.rl.rollouts.prompts.open_prompts``'."""
        self.rows, self.settings, self.method, self._judges = rows, settings, method, judges
        self.registry = Registry[Episode]("episode", most_open=most_open, idle_seconds=idle_seconds)
        self._index = {name: index for index, name in enumerate(rows["sample_id"])}

    async def reset(self, row: int | str, *, mode: str, seed: int) -> str:
        """Open an episode and return its name. Raises ``ServiceError``: too_busy, invalid_request."""
        self.registry.require_room()
        self._require_memory()
        index = self._index.get(row, -1) if isinstance(row, str) else row
        if not 0 <= index < len(self.rows):
            raise ServiceError("invalid_request", f"no row {repr(row)[:80]}; there are {len(self.rows)}, from 0 on")

        async def begin() -> Episode:
            prompted = await asyncio.to_thread(self._prompt, index, mode)
            return Episode(prompted, seed, self.settings.max_rounds, shows_images=self.method.shows_images)

        return await self.registry.add(begin())

    async def step(self, name: str, text: str, *, finished: bool) -> StepResult:
        """Take an episode's next turn. Raises as ``Episode.step``, and too_busy."""
        episode = self.registry.get(name)
        self._require_memory()
        return await episode.step(text, finished=finished)

    def _require_memory(self) -> None:
        if sum(episode.n_held for episode in self.registry) >= MOST_BYTES:
            raise ServiceError("too_busy", f"open episodes have {MOST_BYTES >> 20} MiB: end some, or wait")

    def _prompt(self, index: int, mode: str) -> dict[str, Any]:
        row = self.rows[index]
        protocol = row.get("protocol") or self.settings.protocol
        with raised_as(lambda error: ServiceError("invalid_request", str(error)), UserError):
            return prompt(row, protocol=protocol, mode=mode, wording=self.settings.prompt)

    async def score(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Score finished episodes of one row, as one group. Raises ``ServiceError``: invalid_request where one goes on
        or they are of different rows, infrastructure_failed where a judge does not answer."""
        episodes = [self.registry.get(name) for name in names]
        unscored = [episode for episode in episodes if episode.score is None]
        whole = [outcome for episode in unscored if (outcome := episode.outcome) is not None]
        if len(whole) < len(unscored) or len({episode.row["sample_id"] for episode in episodes}) != 1:
            raise ServiceError("invalid_request", "expected finished episodes of one row")
        with raised_as(lambda error: ServiceError("infrastructure_failed", str(error)), JudgeDown):
            scores = await scored(whole, self.method, self._judges, size=len(whole) or 1)
        columns = zip(whole, scores.broken, scores.rewards, scores.correct, scores.parts, strict=True)
        records = []
        for outcome, broken, reward, correct, parts in columns:
            why = None if outcome.rollout.error is None else str(outcome.rollout.error)
            score = {"reward": reward, "correct": correct, "parts": dict(parts), "broken": broken}
            records.append({**score, "answer": outcome.answer, "error": why, "calls": outcome.n_calls})
        fresh = iter(records)
        results = [episode.score or next(fresh) for episode in episodes]
        if self.scores_alone:
            for episode, score in zip(episodes, results, strict=True):
                episode.settle(score)
        return results

    @property
    def scores_alone(self) -> bool:
        """True if a rollout's reward depends on itself alone, so that it is there as soon as it ends."""
        return type(self.method).score is Method.score
