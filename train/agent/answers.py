"""The agent: a question in, rollouts out. Turns and executions are on the workspace's ledger, and paid for once."""

import asyncio
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.inspection.gallery import write_gallery
from darkroom.pipelines.models.policies import PolicyUnavailable, RecordedPolicy
from darkroom.pipelines.publishing.parquet_shards import write_trajectories
from darkroom.pipelines.records import ImageRef, Sample, Trajectory, to_row
from darkroom.pipelines.records.reject_reasons import RETRYABLE, RowError
from darkroom.pipelines.services import ServiceError
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox import SandboxUnavailable
from darkroom.sandbox.errors import raised_as
from darkroom.train.evaluation.output import trajectory_of
from darkroom.train.evaluation.questions import Question
from darkroom.train.evaluation.rollouts import EvaluatedPolicy, open_policy, run_rollout, task_of
from darkroom.train.evaluation.settings import AgentSettings

KEPT = 1000
"""Latest answers whose pages and images can be requested."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A rollout on a question, and the record of it."""

    sample: Sample
    rollout: Rollout
    trajectory: Trajectory

    def as_json(self) -> dict[str, Any]:
        """The trajectory beside the answer, its rounds as datasets have them; images are at ``/images/SHA256``."""
        error, name = self.rollout.error, self.trajectory.trajectory_id
        rounds, thought = [to_row(turn) for turn in self.rollout.rounds], self.rollout.final_thought
        record = {"id": name, "page": f"/trajectories/{name}", "error": None if error is None else str(error)}
        return {**record, "rounds": rounds, "thought": thought}


async def check(settings: AgentSettings, workspace: Workspace) -> None:
    """Raise ``PolicyUnavailable`` where the model does not answer, ``TrainError`` for wrong settings."""
    async with Agent.open(settings, workspace):
        pass


class Agent:
    """A policy with its tools. ``open`` makes one."""

    def __init__(self, images: ImageStore, ledger: Ledger, evaluated: EvaluatedPolicy) -> None:
        self.images, self._evaluated = images, evaluated
        self._sandboxes = Sandboxes(images, ledger)
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: AgentSettings, workspace: Workspace) -> AsyncIterator["Agent"]:
        """Open the policy. Raises ``PolicyUnavailable`` for no response of the model, ``TrainError`` for settings."""
        evaluated = open_policy(settings.as_evaluation(), workspace.images)
        async with RecordedPolicy(evaluated.policy, workspace.ledger) as policy:
            await policy.check()
            yield cls(workspace.images, workspace.ledger, replace(evaluated, policy=policy))

    @property
    def name(self) -> str:
        return self._evaluated.policy.identity.model

    async def answer(self, sample: Sample, number: int, seed: int | None) -> Answer:
        """Give the ``number``-th answer to a question. Raises ``ServiceError``: invalid_request where the protocol
        cannot put it, infrastructure_failed where the endpoint or the sandbox failed."""
        evaluated = self._evaluated if seed is None else replace(self._evaluated, seed=seed)
        question = Question(sample.source, sample)
        with raised_as(lambda error: ServiceError("invalid_request", str(error)), RowError):
            task = task_of(question, number, evaluated)
        try:
            rollout = await run_rollout(question, task, evaluated, self._sandboxes)
        except (PolicyUnavailable, SandboxUnavailable) as error:
            raise ServiceError("infrastructure_failed", str(error)) from error
        if rollout.error is not None and rollout.error.reason in RETRYABLE:
            raise ServiceError("infrastructure_failed", str(rollout.error))
        answer = Answer(sample, rollout, trajectory_of(question, task, rollout, evaluated))
        self._answers[answer.trajectory.trajectory_id] = answer
        while len(self._answers) > KEPT:
            self._answers.popitem(last=False)
        return answer

    def image(self, sha256: str) -> ImageRef:
        """Find an image of an answer that is kept. Raises ``ServiceError`` (unknown_session)."""
        for answer in self._answers.values():
            observed = (image for turn in answer.rollout.rounds for image in turn.observation.images)
            for image in chain(observed, answer.trajectory.images):
                if image.sha256 == sha256:
                    return image
        raise ServiceError("unknown_session", f"no image of that name in the last {KEPT} answers")

    async def page(self, name: str) -> str:
        """Render a trajectory as a page. Raises ``ServiceError`` (unknown_session) where it is not kept."""
        answer = self._answers.get(name)
        if answer is None:
            raise ServiceError("unknown_session", f"no trajectory of that name among the last {KEPT}")
        return await asyncio.to_thread(self._page, answer)

    def _page(self, answer: Answer) -> str:
        with tempfile.TemporaryDirectory() as folder:
            rows, page = Path(folder, "rows"), Path(folder, "page.html")
            rows.mkdir()
            write_trajectories(rows, [(answer.sample, answer.trajectory)], store=self.images)
            write_gallery(page, [rows], title=f"An answer of {self.name}", inline_bytes=1 << 40)
            return page.read_text(encoding="utf-8")
