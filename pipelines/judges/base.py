"""What a judge is: it answers a yes-or-no question about a case, in votes.

A question is a prompt file and, for the embedded judge, a rule that measures the same on pixels and text. Rows that the
embedded judge let pass say so, like rows that the oracle wrote.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.cases import Case
from pipelines.prompts import Prompt
from pipelines.records import ImageRef, Usage


@dataclass(frozen=True, slots=True)
class Votes:
    """How a judge voted. ``n_invalid`` votes were no answer. ``reasons``: what the votes said, in their order.

    ``threshold`` is the share of yes votes from which on the judge says yes, where it was calibrated.
    """

    judge: str
    n_yes: int
    n_no: int
    n_invalid: int = 0
    reasons: tuple[str, ...] = ()
    usage: Usage = Usage()
    threshold: float | None = None

    @property
    def n(self) -> int:
        """All votes, the invalid ones included."""
        return self.n_yes + self.n_no + self.n_invalid

    @property
    def share(self) -> float:
        """Of all votes, those that said yes."""
        return self.n_yes / self.n if self.n else 0.0

    @property
    def says_yes(self) -> bool:
        """What they come to: by the threshold, or without one by the majority of all votes."""
        return 2 * self.n_yes > self.n if self.threshold is None else self.share >= self.threshold

    @property
    def agreement(self) -> float:
        """Of the valid votes, those on the larger side; 1.0 where they all agree."""
        valid = self.n_yes + self.n_no
        return max(self.n_yes, self.n_no) / valid if valid else 0.0

    def __str__(self) -> str:
        said = next((reason for reason in self.reasons if reason), "")
        return f"{self.judge}: {self.n_yes} of {self.n} say yes{f'; {said}' if said else ''}"


@dataclass(frozen=True, slots=True)
class Question:
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
        ...

    async def ask(
        self, question: Question, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The votes. ``images`` are shown before the text, in their order. Raises ``RowFault`` when none can be had."""
        ...


class EmbeddedJudge:
    """Answers by the question's rule: one vote, no model, no cost."""

    identity: Mapping[str, Any] = {"policy": "embedded"}

    async def ask(
        self, question: Question, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """One vote, by the rule."""
        says_yes = question.rule(case)
        return Votes("embedded", int(says_yes), int(not says_yes))
