"""A judge answers a yes-or-no question about a case, in votes.

A question is a prompt file and, for the embedded judge, a rule that measures the same on pixels and text. Rows that the
embedded judge accepted are marked as such, like rows that the oracle wrote.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from darkroom.pipelines.models.prompts import Prompt
from darkroom.pipelines.records import ImageRef, Usage, Votes
from darkroom.pipelines.verification.case import Case


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """A question with the answer yes or no. The prompt's slots are what ``Judge.ask`` is given."""

    name: str
    prompt: Prompt
    rule: Callable[[Case], bool]
    """The embedded judge's opinion: measured, deterministic, without a model."""


class Judge(typing.Protocol):
    """Answers questions."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that determines its answers, besides the question."""

    async def ask(
        self, question: JudgeQuestion, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The votes. ``images`` are shown before the text, in their order. Raises ``RowError`` when none can be had."""


class EmbeddedJudge:
    """Answers by the question's rule: one vote, no model, no cost."""

    identity: Mapping[str, Any] = {"policy": "embedded"}

    async def ask(
        self, question: JudgeQuestion, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        return Votes("embedded", (question.rule(case),), n_wanted=1)


class CountedJudge:
    """``judge``, with the threshold of each question (by name) that it was calibrated for, and the usage of all its
    votes so far."""

    def __init__(self, judge: Judge, thresholds: Mapping[str, float] | None = None) -> None:
        self._judge, self._thresholds = judge, thresholds or {}
        self.usage = Usage()

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._judge.identity

    async def ask(
        self, question: JudgeQuestion, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The inner judge's votes, with the threshold."""
        votes = await self._judge.ask(question, case, slots=slots, images=images)
        self.usage += votes.usage
        return replace(votes, threshold=self._thresholds.get(question.name))
