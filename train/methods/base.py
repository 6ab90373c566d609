"""What a method of reinforcement learning is: how its rollouts are asked for, and what they earn."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipelines.images import ImageStore
from pipelines.policies.base import Policy
from train import rewards
from train.outcomes import Outcome

Scale = Literal["group", "none"]
BY_MEANING = ("judged", "text")
"""Kinds of answers that a judge may find right where their words are not the same (Thyme §4.4, Result Reward)."""
RUN_OUT = frozenset({"timeout", "memory"})
"""Statuses of programs that say more of the machine than of the code."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A paper's settings of training; each can be overridden on the command line."""

    learning_rate: float
    generations: int
    max_rounds: int
    beta: float = 0.0
    """Weight of the KL divergence from the model that training began with."""
    temperature: float = 1.0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    scale: Scale = "none"
    """Whether advantages are divided by the group's standard deviation."""
    loss_type: Literal["grpo", "dapo"] = "dapo"
    """``grpo``: a mean over each rollout's tokens, then over rollouts. ``dapo``: over all tokens of the batch."""
    oversample: float = 1.0
    """Groups that are rolled out for each that is trained on (PyVision-RL, algorithm 1)."""
    adaptive_temperature: bool = False
    """GRPO-ATS: temperature 0 inside code."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Who is asked: nobody, or one policy, whose votes are counted. Pictures reach it by ``store``."""

    policy: Policy | None = None
    n_votes: int = 1
    store: ImageStore = field(default_factory=lambda: ImageStore("memory://rollouts"))


@dataclass(frozen=True, slots=True)
class Scored:
    """What a rollout earned, and of which parts; every part is a metric."""

    reward: float
    correct: float
    parts: Mapping[str, float]


class Method(typing.Protocol):
    """One paper's way."""

    name: str
    says: str
    """One line for ``--help``."""
    protocol: str
    """In which questions are asked where a dataset does not say."""
    terms: Terms
    broken: frozenset[str]
    """Statuses of a program that take its rollout out of the update."""
    wants_judge: str
    """What a judge is asked, and what happens without one."""

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """The mode of every rollout of a group. Raises ``TrainFault`` for a size that cannot be divided so."""
        ...

    async def score(self, group: Sequence[Outcome], judges: Judges) -> list[Scored]:
        """The rewards of all rollouts of one prompt, broken ones left out. Raises ``JudgeDown``."""
        ...


async def correctness(outcome: Outcome, judges: Judges) -> float:
    """1.0 for the right answer: by its grader's rule, else, of words, by the judge where there is one."""
    sample, grader = outcome.asked.sample, outcome.asked.grader
    right = await asyncio.to_thread(rewards.correctness, outcome.answer, sample, grader)
    if right or outcome.answer is None or judges.policy is None or grader.kind not in BY_MEANING:
        return right
    return float(await ask.answer(judges, outcome.answer, sample))


async def correct_of(group: Sequence[Outcome], judges: Judges) -> list[float]:
    """The correctness of every rollout of a group, asked at the same time."""
    return list(await asyncio.gather(*(correctness(outcome, judges) for outcome in group)))


def all_free(n_rollouts: int) -> tuple[str, ...]:
    """The modes of a group whose rollouts are all asked alike."""
    return ("free",) * n_rollouts
