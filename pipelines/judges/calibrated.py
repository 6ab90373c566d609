"""A judge that says yes from its calibrated thresholds on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipelines.cases import Case
from pipelines.judges.base import Judge, Question
from pipelines.records import ImageRef, Votes


class CalibratedJudge:
    """``judge``, with the threshold of each question (by name) that it was calibrated for."""

    def __init__(self, judge: Judge, thresholds: Mapping[str, float]) -> None:
        self._judge, self._thresholds = judge, thresholds

    @property
    def identity(self) -> Mapping[str, Any]:
        """The inner judge's."""
        return self._judge.identity

    async def ask(
        self, question: Question, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The inner judge's votes, with the threshold."""
        votes = await self._judge.ask(question, case, slots=slots, images=images)
        return replace(votes, threshold=self._thresholds.get(question.name))
