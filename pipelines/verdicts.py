"""A family's verdicts: its checks, their judges with what is known of them, and whether rows need image and tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

from pipelines.calibrations import Calibrations, Frozen
from pipelines.cases import Case
from pipelines.checks.base import CheckFunction, JudgedCheck
from pipelines.checks.necessity import Necessity, blind_scores, verdicts
from pipelines.drafting import Spent
from pipelines.judges import EmbeddedJudge, Judge, PolicyJudge
from pipelines.judges.calibrated import CalibratedJudge
from pipelines.judges.counted import CountedJudge
from pipelines.ledger import Ledger
from pipelines.policies import Policy, RecordedPolicy
from pipelines.recipes.base import Recipe
from pipelines.records import Check
from pipelines.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Examiner:
    """Gives the verdicts on one row after another. ``unaided`` answers the questions of ``necessity``."""

    checks: Sequence[CheckFunction]
    judge: Judge
    unaided: Policy | None
    necessity: Necessity | None
    asked: Sequence[RecordedPolicy]

    @property
    def n_asked(self) -> int:
        """Turns that had to be written, not recalled."""
        return sum(policy.n_written for policy in self.asked)

    async def examine(self, case: Case, spent: Spent) -> tuple[Check, ...]:
        """Every verdict. Raises what a check raises; ``spent`` is kept up to date.

        Necessity comes last, so that nothing is paid for it where the row is taken out anyway.
        """
        judge = CountedJudge(self.judge)
        try:
            found = [await _verdict(check, case, judge) for check in self.checks]
        finally:
            spent.usage += judge.usage
        if self.unaided is not None and self.necessity is not None and all(check.passed for check in found):
            scores = await blind_scores(case, self.unaided, k=self.necessity.k)
            spent.usage += scores.usage
            found += verdicts(scores, self.necessity)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Panel:
    """Who gives a family's verdicts, before any of them is asked."""

    checks: Sequence[CheckFunction]
    judge: Policy | None
    n_votes: int
    calibrations: Mapping[str, Frozen]
    """By the check's name; a judge without one says yes by majority."""
    unaided: Policy | None
    necessity: Necessity | None

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        workspace: Workspace,
        judge: Policy | None,
        *,
        n_votes: int,
        unaided: Policy | None,
        necessity: Necessity | None,
    ) -> Self:
        """Without the policies that the recipe has no use for; bundled calibrations are made where they are missing."""
        judged = _judged(recipe.checks)
        measured = (necessity or recipe.necessity) if unaided is not None else None
        judge = judge if judged else None
        calibrations = Calibrations(workspace.calibrations)
        voter = EmbeddedJudge() if judge is None else PolicyJudge(judge, n_votes=n_votes)
        if judge is None:
            for check in judged:
                calibrations.add_bundled(check, workspace.images)
        found = {check.name: frozen for check in judged if (frozen := calibrations.of(check, voter))}
        return cls(recipe.checks, judge, n_votes, found, unaided if measured else None, measured)

    @property
    def identity(self) -> list[Any]:
        """All that determines the verdicts, besides the recipe and the runs."""
        policies = [policy.identity.as_json() for policy in (self.judge, self.unaided) if policy is not None]
        return [policies, self.n_votes if self.judge else 0, self.notes]

    @property
    def notes(self) -> dict[str, Any]:
        """For the card: which judge with which calibration, and how necessity was measured."""
        judges = [
            {
                "check": check.name,
                "judge": self.judge.identity.model if self.judge else "embedded",
                "n_votes": self.n_votes if self.judge else 1,
                "calibration": self.calibrations[check.name].as_json() if check.name in self.calibrations else None,
            }
            for check in _judged(self.checks)
        ]
        measured: dict[str, Any] = {}
        if self.unaided is not None and self.necessity is not None:
            measured = {"necessity": {**asdict(self.necessity), "model": self.unaided.identity.model}}
        return {**({"judges": judges} if judges else {}), **measured}

    @property
    def concurrency(self) -> int:
        """Rows to work on at once."""
        asked = [policy.concurrency for policy in (self.judge, self.unaided) if policy is not None]
        return max([os.cpu_count() or 1, *asked])

    @asynccontextmanager
    async def opened(self, ledger: Ledger) -> AsyncIterator[Examiner]:
        """The examiner, whose policies were reached and are closed at the end. Raises ``PolicyUnavailable``."""
        async with AsyncExitStack() as stack:
            recorded = [
                await stack.enter_async_context(RecordedPolicy(policy, ledger)) if policy is not None else None
                for policy in (self.judge, self.unaided)
            ]
            asked = [policy for policy in recorded if policy is not None]
            for policy in asked:
                await policy.check()
            judge, unaided = recorded
            voter = EmbeddedJudge() if judge is None else PolicyJudge(judge, n_votes=self.n_votes)
            questions = {check.name: check.question.name for check in _judged(self.checks)}
            thresholds = {questions[name]: frozen.calibration.threshold for name, frozen in self.calibrations.items()}
            yield Examiner(self.checks, CalibratedJudge(voter, thresholds), unaided, self.necessity, asked)


def _judged(checks: Sequence[CheckFunction]) -> list[JudgedCheck]:
    return [check for check in checks if isinstance(check, JudgedCheck)]


async def _verdict(check: CheckFunction, case: Case, judge: Judge) -> Check:
    if isinstance(check, JudgedCheck):
        return await check(case, judge)
    return await asyncio.to_thread(check, case)
