"""A judge whose usage is added up, for the row that it judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.cases import Case
from pipelines.judges.base import Judge, Question
from pipelines.records import ImageRef, Usage, Votes


class CountedJudge:
    """``judge``, with the usage of all its votes so far."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.usage = Usage()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The inner judge's."""
        return self._judge.identity

    async def ask(
        self, question: Question, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The inner judge's votes."""
        votes = await self._judge.ask(question, case, slots=slots, images=images)
        self.usage += votes.usage
        return votes
