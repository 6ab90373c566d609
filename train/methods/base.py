"""What a method of reinforcement learning is: how its rollouts are asked for, and what they earn."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from train.methods import ask
from train.methods.ask import Judges
from train.options import LossType, Scale
from train.rollouts.outcomes import Outcome

RUN_OUT = frozenset({"timeout", "memory"})
"""Statuses of programs that say more of the machine than of the code."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A paper's settings of training; each can be overridden on the command line. Batch and steps are the user's."""

    learning_rate: float
    generations: int
    max_rounds: int
    beta: float = 0.0
    """Weight of the KL divergence from the model that training began with."""
    temperature: float = 1.0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    epochs: float = 1.0
    """Passes over the prompts."""
    scale: Scale = "none"
    loss_type: LossType = "dapo"
    oversample: float = 1.0
    """Groups that are rolled out for each that is trained on (PyVision-RL, algorithm 1)."""
    adaptive_temperature: bool = False
    """GRPO-ATS: temperature 0 inside code."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What a rollout earned, and of which parts; every part is a metric."""

    reward: float
    correct: float
    parts: Mapping[str, float]


class Method(ABC):
    """One paper's way; its options are the fields of its class."""

    name: ClassVar[str]
    says: ClassVar[str]
    """In one line."""
    protocol: ClassVar[str]
    """In which questions are asked where a dataset does not say."""
    terms: ClassVar[Terms]
    wants_judge: ClassVar[str] = "whether an answer means the expected one (without: by its words)"
    """What a judge is asked, and what counts without one."""

    @property
    def broken(self) -> frozenset[str]:
        """Statuses of a program that take its rollout out of the update."""
        return RUN_OUT

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """The mode of every rollout of a group. Raises ``TrainFault`` for a size that cannot be divided so."""
        return ("free",) * n_rollouts

    @abstractmethod
    async def score(self, group: Sequence[Outcome], judges: Judges) -> list[Scored]:
        """The rewards of all rollouts of one prompt, broken ones left out. Raises ``JudgeDown``."""


async def correct_of(group: Sequence[Outcome], judges: Judges) -> list[float]:
    """The correctness of every rollout of a group, asked at the same time."""
    return list(await asyncio.gather(*(ask.correctness(judges, outcome) for outcome in group)))
