"""The interface of a method of reinforcement learning: its settings, the rollouts it scores, and their scores. The loss
that its ``loss_type`` names is computed in ``rollouts/loss.py``."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import yaml
from PIL import Image

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.records import Grader, Sample
from darkroom.train.rl import rewards
from darkroom.train.rl.judging.judges import Judges, answer
from darkroom.train.rl.settings import MethodDefaults


@dataclass(frozen=True, slots=True)
class GradedQuestion:
    """A question with its grader and its suitability for drawing."""

    sample: Sample
    grader: Grader
    suitable: bool | None
    """True if a drawing would help; None where it is unknown."""
    necessity_prior: float | None = None
    """Accuracy with tools less accuracy without, as measured before training; -1..1."""
    visual_search: bool | None = None
    """True if it asks for something small at one position; None where that is unknown."""


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """One rollout of a group."""

    question: GradedQuestion
    protocol: str
    mode: str
    rollout: Rollout
    turns: tuple[str, ...]
    """Texts of the model, turn by turn."""
    question_images: tuple[Image.Image, ...]
    pixels: Mapping[str, Image.Image]
    """The images that code showed, by ``ImageRef.sha256``."""
    n_tokens: int
    """Tokens of the model."""
    seconds: float = 0.0
    """Run time of its code."""
    n_over_limit: int = 0
    """Images of its code that the sandbox did not show: too many, or too large."""
    sandbox_error: str | None = None
    """Why the sandbox could not execute its code, or lost its session."""

    @property
    def text(self) -> str:
        return "\n".join(self.turns)

    @property
    def answer(self) -> str | None:
        """None where the rollout has none: malformed, cut off, in circles, or out of rounds."""
        return None if self.rollout.error is not None else self.rollout.answer

    @property
    def thought(self) -> str:
        return "\n".join([turn.thought for turn in self.rollout.rounds] + [self.rollout.final_thought])

    @property
    def n_calls(self) -> int:
        return len(self.rollout.rounds)

    @property
    def n_ok(self) -> int:
        return sum(turn.observation.status == "ok" for turn in self.rollout.rounds)

    @property
    def used_tool(self) -> bool:
        return bool(self.rollout.rounds)

    def failed(self, statuses: frozenset[str], *, over_limit: bool = False) -> str | None:
        """The reason of a broken rollout (PyVision-RL §3.3): the sandbox's error, a status, images ``over_limit``."""
        if self.sandbox_error is not None:
            return self.sandbox_error
        for number, observation in enumerate((turn.observation for turn in self.rollout.rounds), start=1):
            if observation.status in statuses:
                return f"program {number}: {observation.status}: {observation.error or 'no error text'}"
        if over_limit and self.n_over_limit:
            return f"{self.n_over_limit} images exceed the sandbox's limits"
        return None


RUN_OUT = frozenset({"timeout", "memory"})
"""Execution statuses that depend on the machine more than on the code."""


@dataclass(frozen=True, slots=True)
class RolloutScore:
    """A rollout's reward and its parts; every part is a metric."""

    reward: float
    correct: float
    parts: Mapping[str, float]
    is_trained: bool = True
    """False: it counts for the rewards of others, and is in no mean, no advantage and no loss."""


PAPERS, _PRINTED, _FIELDS = (
    yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
    for name in ("papers", "terms", "loss")
)
LOSS: Mapping[str, Any] = {name: field["value"] for name, field in _FIELDS["set"].items()}
"""Arguments of TRL's loss that have no option of their own: as ``loss.yaml`` sets each, no default of TRL's enters."""


def printed_terms(name: str) -> tuple[MethodDefaults, Mapping[str, str]]:
    """The terms of a paper's method, and the places where the paper states them, as in ``terms.yaml``; of the loss, as
    in ``loss.yaml``, by names like ``trainer.delta``."""
    entries: Mapping[str, tuple[Any, str | None]] = _PRINTED[name]
    values = {term: value for term, (value, _) in entries.items() if value is not None}
    places = {term: place for term, (_, place) in entries.items() if place}
    of_loss = {f"trainer.{term}": field[name] for term, field in _FIELDS["set"].items() if name in field}
    return MethodDefaults(**values), places | of_loss


class Method:
    """One paper's method; its options are the fields of its class."""

    name: ClassVar[str]
    says: ClassVar[str]
    """The method in one line."""
    protocol: ClassVar[str]
    """The protocol of questions whose dataset names none."""
    terms: ClassVar[MethodDefaults]
    sources: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The places where the paper states terms, and the size of its batch. Other terms are this project's choice."""
    loss: ClassVar[Mapping[str, Any]] = LOSS
    wants_judge: ClassVar[str] = "whether an answer means the expected one (without: by its words)"
    """The question to a judge, and what counts without one."""

    def __init_subclass__(cls, *, paper: str = "") -> None:
        """Fill a ``paper``'s method with what the YAML files beside this module say of it."""
        if paper:
            cls.name, (cls.terms, cls.sources) = paper, printed_terms(paper)
            for name in PAPERS[paper].keys() - {"methods"}:
                setattr(cls, name, PAPERS[paper][name])

    @property
    def broken(self) -> frozenset[str]:
        """Execution statuses that exclude a rollout from the update."""
        return RUN_OUT

    @property
    def breaks_over_limit(self) -> bool:
        """True if a rollout is broken whose code showed more images, or larger ones, than the sandbox shows."""
        return False

    @property
    def shows_images(self) -> bool:
        """True if the model sees the images of its code; else it is shown text alone."""
        return True

    @property
    def ranks_groups(self) -> bool:
        """True if the groups of an oversampled batch with the largest spread are trained; else the first."""
        return True

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """The mode of every rollout of a group. Raises ``TrainError`` for a size that cannot be divided so."""
        return ("free",) * n_rollouts

    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """Score all rollouts of one prompt, broken ones left out. Raises ``JudgeDown``."""
        rated = await rate(group, judges)
        return list(await asyncio.gather(*(self.score_one(outcome, correct, judges) for outcome, correct in rated)))

    async def score_one(self, outcome: RolloutOutcome, correct: float, judges: Judges) -> RolloutScore:
        """Score one rollout; a method that compares those of a group has a ``score`` of its own."""
        raise NotImplementedError


async def rate(group: Sequence[RolloutOutcome], judges: Judges) -> list[tuple[RolloutOutcome, float]]:
    """Grade the rollouts of a group: 1.0 for a right answer, else 0.0. By the grader's rule, else, where no rule is
    final, by meaning; judges are asked at the same time."""

    async def graded(outcome: RolloutOutcome) -> float:
        sample, grader = outcome.question.sample, outcome.question.grader
        right = await asyncio.to_thread(rewards.correctness, outcome.answer, sample, grader)
        if right or judges.policy is None:
            return right
        return (await answer(outcome.answer, sample, judges.policy, grader=grader, n_votes=judges.n_votes)).score

    return list(zip(group, await asyncio.gather(*map(graded, group)), strict=True))
