"""The interface of a method of reinforcement learning: its settings, the rollouts it scores, and their scores.

A method is one paper's; each has a module beside this one. Judges' scores of a rollout, which several methods use, and
what replaces them without a judge, stand at the end.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from PIL import Image

from pipelines.generation.rollout import Rollout
from pipelines.models.tasks import question_text
from pipelines.records import Grader, ImageRef, Round, Sample
from pipelines.records.digest import digest_bytes
from train.rl import rewards
from train.rl.judging import judges as judge
from train.rl.judging.judges import Judges
from train.rl.judging.redlines import redlines
from train.rl.judging.redlines import tool_scores as scores_of
from train.rl.settings import MethodDefaults


@dataclass(frozen=True, slots=True)
class GradedQuestion:
    """A question with its grader and its suitability for drawing."""

    sample: Sample
    grader: Grader
    suitable: bool | None
    """Whether a drawing would help; None where it is unknown."""


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """One rollout of a group."""

    question: GradedQuestion
    protocol: str
    mode: str
    rollout: Rollout
    turns: tuple[str, ...]
    """What the model wrote, turn by turn."""
    question_images: tuple[Image.Image, ...]
    pixels: Mapping[str, Image.Image]
    """The images that programs showed, by ``ImageRef.sha256``."""
    n_tokens: int
    """That the model wrote."""
    seconds: float = 0.0
    """That its programs took."""
    sandbox_error: str | None = None
    """Why the sandbox could not execute one of its programs, or lost its session."""

    @property
    def question_refs(self) -> tuple[ImageRef, ...]:
        """The question's images, digested as those that programs showed."""
        return tuple(pixel_ref(image) for image in self.question_images)

    @property
    def text(self) -> str:
        """All that the model wrote, without observations."""
        return "\n".join(self.turns)

    @property
    def answer(self) -> str | None:
        """None where the rollout has none: malformed, cut off, in circles, or out of rounds."""
        return None if self.rollout.error is not None else self.rollout.answer

    @property
    def thought(self) -> str:
        """All thoughts, in order."""
        return "\n".join([turn.thought for turn in self.rollout.rounds] + [self.rollout.final_thought])

    @property
    def n_calls(self) -> int:
        """Programs that were executed."""
        return len(self.rollout.rounds)

    @property
    def n_ok(self) -> int:
        """Programs that ran without error."""
        return sum(turn.observation.status == "ok" for turn in self.rollout.rounds)

    @property
    def used_tool(self) -> bool:
        """Whether any program was executed."""
        return bool(self.rollout.rounds)

    @property
    def shown_images(self) -> tuple[ImageRef, ...]:
        """All images that programs showed, in order."""
        return tuple(image for turn in self.rollout.rounds for image in turn.observation.images)

    def failed(self, statuses: frozenset[str]) -> str | None:
        """Why the rollout is broken (PyVision-RL algorithm 1): the sandbox's own error, or code with such a status."""
        if self.sandbox_error is not None:
            return self.sandbox_error
        for number, turn in enumerate(self.rollout.rounds, start=1):
            if turn.observation.status in statuses:
                return f"program {number}: {turn.observation.status}: {turn.observation.error or 'no error text'}"
        return None


def pixel_ref(image: Image.Image) -> ImageRef:
    """An image of no store, by the digest of its pixels, as the sandbox shows them: RGB."""
    plain = image.convert("RGB")
    return ImageRef(digest_bytes(plain.tobytes()), plain.width, plain.height, plain.mode, "PNG")


RUN_OUT = frozenset({"timeout", "memory"})
"""Execution statuses that depend on the machine more than on the code."""


@dataclass(frozen=True, slots=True)
class RolloutScore:
    """A rollout's reward and its parts; every part is a metric."""

    reward: float
    correct: float
    parts: Mapping[str, float]


class Method(ABC):
    """One paper's method; its options are the fields of its class."""

    name: ClassVar[str]
    says: ClassVar[str]
    """In one line."""
    protocol: ClassVar[str]
    """The protocol of questions whose dataset names none."""
    terms: ClassVar[MethodDefaults]
    wants_judge: ClassVar[str] = "whether an answer means the expected one (without: by its words)"
    """The question to a judge, and what counts without one."""

    @property
    def broken(self) -> frozenset[str]:
        """Execution statuses that exclude a rollout from the update."""
        return RUN_OUT

    def modes(self, n_rollouts: int) -> tuple[str, ...]:
        """The mode of every rollout of a group. Raises ``TrainError`` for a size that cannot be divided so."""
        return ("free",) * n_rollouts

    @abstractmethod
    async def score(self, group: Sequence[RolloutOutcome], judges: Judges) -> list[RolloutScore]:
        """The rewards of all rollouts of one prompt, broken ones left out. Raises ``JudgeDown``."""


async def correctness(judges: Judges, outcome: RolloutOutcome) -> float:
    """1.0 for the right answer: by its grader's rule, else, where no rule has the last word, by its meaning."""
    sample, grader = outcome.question.sample, outcome.question.grader
    right = await asyncio.to_thread(rewards.correctness, outcome.answer, sample, grader)
    if right or judges.policy is None:
        return right
    opinion = await judge.answer(outcome.answer, sample, judges.policy, grader=grader, n_votes=judges.n_votes)
    return opinion.score


async def consistency(judges: Judges, outcome: RolloutOutcome) -> float:
    """Whether the answer follows from the thoughts; 0 without a judge."""
    if judges.policy is None:
        return 0.0
    question = question_text(outcome.question.sample)
    opinion = await judge.consistency(
        outcome.thought, outcome.answer or "", question, judges.policy, n_votes=judges.n_votes
    )
    return opinion.score


async def process(judges: Judges, outcome: RolloutOutcome) -> float:
    """How good the thinking is; 0 without a judge."""
    if judges.policy is None:
        return 0.0
    question = question_text(outcome.question.sample)
    return (await judge.process(outcome.thought, question, judges.policy, n_votes=judges.n_votes)).score


async def tool_scores(judges: Judges, outcome: RolloutOutcome) -> tuple[float, ...]:
    """One score per round: a redline's, else the evidence of its best image; 0 without a judge."""
    crossed_by_round = redlines(outcome.rollout.rounds, outcome.question_refs)
    questions = [
        None if crossed else _evidence(judges, outcome, turn)
        for crossed, turn in zip(crossed_by_round, outcome.rollout.rounds, strict=True)
    ]
    answers = iter(await asyncio.gather(*(question for question in questions if question is not None)))
    return scores_of(crossed_by_round, [None if question is None else next(answers) for question in questions])


async def _evidence(judges: Judges, outcome: RolloutOutcome, turn: Round) -> float | None:
    if judges.policy is None or judges.images is None or not turn.observation.images:
        return None
    policy, question = judges.policy, outcome.question.sample.question
    images = [judges.images.add_pixels(outcome.pixels[image.sha256]) for image in turn.observation.images]
    opinions: Sequence[judge.Opinion] = await asyncio.gather(
        *(
            judge.evidence(question, picture, policy, n_votes=judges.n_votes, rubric=judges.rubric)
            for picture in dict.fromkeys(images)
        )
    )
    return max(opinion.score for opinion in opinions)


async def correct_of(group: Sequence[RolloutOutcome], judges: Judges) -> list[float]:
    """The correctness of every rollout of a group, asked at the same time."""
    return list(await asyncio.gather(*(correctness(judges, outcome) for outcome in group)))
