"""What methods ask judges of a rollout, and what counts where there is no judge."""

from __future__ import annotations

import asyncio

from pipelines.records import ImageRef, Sample
from train import judges as judge
from train.methods.base import Judges
from train.outcomes import Outcome
from train.redlines import redlines


async def answer(judges: Judges, given: str, sample: Sample) -> bool:
    """Whether an answer means the expected one."""
    raise NotImplementedError


async def consistency(judges: Judges, outcome: Outcome) -> float:
    """Whether the answer follows from the thoughts; 0 without a judge."""
    raise NotImplementedError
