"""What methods ask judges of a rollout, and what counts where there is no judge."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.images import ImageStore
from pipelines.policies.base import Policy
from pipelines.records import Sample
from train.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Judges:
    """Who is asked: nobody, or one policy, whose votes are counted. Pictures reach it by ``store``."""

    policy: Policy | None = None
    n_votes: int = 1
    store: ImageStore = field(default_factory=lambda: ImageStore("memory://rollouts"))


async def answer(judges: Judges, given: str, sample: Sample) -> bool:
    """Whether an answer means the expected one."""
    return False


async def consistency(judges: Judges, outcome: Outcome) -> float:
    """Whether the answer follows from the thoughts; 0 without a judge."""
    return 0.0


async def process(judges: Judges, outcome: Outcome) -> float:
    """How good the thinking is; 0 without a judge."""
    return 0.0


async def tool_scores(judges: Judges, outcome: Outcome) -> list[float]:
    """One score per program."""
    return [0.0 for _ in outcome.rollout.rounds]
