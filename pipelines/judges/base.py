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
from pipelines.records import ImageRef, Votes


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
        return Votes("embedded", (question.rule(case),), n_wanted=1)
