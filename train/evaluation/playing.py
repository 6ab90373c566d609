"""Rollouts of a policy on questions, each on the record: what was written or executed once is not paid for again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pipelines.digest import digest, seed_from
from pipelines.execution import Sandboxes
from pipelines.policies import Policy
from pipelines.protocols import PROTOCOLS, Protocol
from pipelines.records import ImageRef, Observation, Sample
from pipelines.rejects import RETRYABLE
from pipelines.rollout import Rollout, Session, rollout
from pipelines.tasks import Prepared, Task, question_text
from train.evaluation.pictures import Seen
from train.evaluation.questions import Question
from train.evaluation.scoring import Score
from train.models import viewable

FAMILY = "evaluation"


@dataclass(frozen=True, slots=True)
class Contestant:
    """Who is evaluated, and how it is asked.

    ``protocol`` and ``mode`` count where a question comes without its own. ``prepare`` is for the oracle alone: what
    it is told of a sample.
    """

    policy: Policy
    protocol: str = "thyme"
    mode: str = "free"
    max_rounds: int = 6
    seed: int = 0
    prepare: Callable[[Sample], Prepared] | None = None

    def protocol_of(self, question: Question) -> Protocol:
        """The protocol in which the question is asked."""
        return PROTOCOLS[question.protocol or self.protocol]


@dataclass(frozen=True, slots=True)
class Played:
    """A rollout on a question, the ``number``-th of its kind, with its score and what its rounds showed."""

    question: Question
    number: int
    task: Task
    rollout: Rollout
    score: Score
    seen: tuple[Seen, ...] = field(default=())

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """The pictures of the question."""
        return self.task.images

    @property
    def failed(self) -> bool:
        """Whether it says nothing about the policy: an endpoint or the sandbox failed. Another run tries again."""
        fault = self.rollout.fault
        return fault is not None and fault.reason in RETRYABLE


@dataclass(frozen=True, slots=True)
class Viewing:
    """A session in which an image that no model takes is an error that the model is told, as in training."""

    session: Session

    async def run(self, code: str) -> Observation:
        """As the session."""
        return viewable(await self.session.run(code))


def task_of(question: Question, number: int, contestant: Contestant) -> Task:
    """The ``number``-th rollout on a question. Raises ``RowFault`` where the protocol or the oracle cannot take it."""
    sample, protocol = question.sample, contestant.protocol_of(question)
    mode = question.mode or contestant.mode
    prepared = contestant.prepare(sample) if contestant.prepare else Prepared(sample.images, mode=mode)
    seed = seed_from(FAMILY, sample.sample_id, contestant.seed, number)
    identity = contestant.policy.identity.as_json()
    return Task(
        trajectory_id=digest(
            [FAMILY, sample.sample_id, protocol.name, prepared.mode, identity, contestant.max_rounds, seed]
        ),
        family=FAMILY,
        sample=sample,
        images=prepared.images,
        hint=prepared.hint,
        opening=protocol.opening(question_text(sample), prepared.images, sample.videos, mode=prepared.mode),
        seed=seed,
        mode=prepared.mode,
    )


async def play(question: Question, task: Task, contestant: Contestant, sandboxes: Sandboxes) -> Rollout:
    """One rollout; a turn or an execution that cannot be had is its fault."""
    async with sandboxes.session(task.images, task.sample.videos, seed=task.seed) as session:
        return await rollout(
            task,
            policy=contestant.policy,
            protocol=contestant.protocol_of(question),
            session=Viewing(session),
            max_rounds=contestant.max_rounds,
        )
