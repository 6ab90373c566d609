"""A family's verdicts: its checks, their judges with their calibrations, and whether rows need image and tools."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from darkroom.pipelines.generation.drafting import CONVERSATION_CODE, RecipeStage, UsageMeter
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.stage import Rejection, Shard, row_error
from darkroom.pipelines.models.policies import Policy
from darkroom.pipelines.records import Check, Draft, Sample, Trajectory, Usage
from darkroom.pipelines.storage.storage_errors import AnswersPending
from darkroom.pipelines.storage.tables import TableReplaced
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.calibration_store import CalibrationStore, StoredCalibration
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import CheckFunction, JudgedCheck
from darkroom.pipelines.verification.checks.hint import judge_leak
from darkroom.pipelines.verification.checks.necessity import Necessity, blind_scores, necessity_checks
from darkroom.pipelines.verification.judges import EmbeddedJudge, Judge, PolicyJudge
from darkroom.pipelines.verification.judges.judge import CountedJudge
from darkroom.pipelines.vision.legibility import ocr_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts(RecipeStage[Case, Trajectory]):
    """Every check on every run. ``unaided`` answers the questions of ``necessity``."""

    recipe: Recipe
    judge: Policy | None
    n_votes: int
    calibrations: Mapping[str, StoredCalibration]
    """By the check's name; a judge without one says yes by majority."""
    unaided: Policy | None
    necessity: Necessity | None

    table: ClassVar[str] = "verdicts"
    above: ClassVar[Sequence[str]] = ("drafts", "runs")
    kind: ClassVar[type[Trajectory]] = Trajectory
    code: ClassVar[Sequence[str]] = (
        *CONVERSATION_CODE,
        __name__,
        "darkroom.pipelines.verification",
        "darkroom.pipelines.vision",
    )
    roles: ClassVar[Sequence[str]] = ("judge", "unaided")

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
        judges_leaks: bool = False,
    ) -> Self:
        """Without the policies that the recipe has no use for; missing bundled calibrations are made.

        ``judges_leaks``: with ``judge_leak`` as the last check, whatever the recipe.
        """
        if judges_leaks and judge_leak not in recipe.checks:
            recipe = replace(recipe, checks=(*recipe.checks, judge_leak))
        judged = _judged(recipe.checks)
        necessity = (necessity or recipe.necessity) if unaided is not None else None
        unaided = unaided if necessity else None
        judge = judge if judged else None
        store = CalibrationStore(workspace.calibrations)
        voter = EmbeddedJudge() if judge is None else PolicyJudge(judge, n_votes=n_votes)
        if judge is None:
            for check in judged:
                store.add_bundled(check, workspace.images)
        by_check = {check.name: frozen for check in judged if (frozen := store.of(check, voter))}
        policies = {"judge": judge, "unaided": unaided}
        return cls(recipe=recipe, n_votes=n_votes, calibrations=by_check, necessity=necessity, **policies)

    @property
    def settings(self) -> Mapping[str, Any]:
        n_votes = self.n_votes if self.judge else 0
        return {"recipe": self.recipe.digest, "n_votes": n_votes, "notes": self.notes, "ocr": ocr_version()}

    @property
    def notes(self) -> Mapping[str, Any]:
        """For the card: which judge with which calibration, and how necessity was measured."""
        judges = [
            {
                "check": check.name,
                "judge": self.judge.identity.model if self.judge else "embedded",
                "n_votes": self.n_votes if self.judge else 1,
                "calibration": self.calibrations[check.name].as_json() if check.name in self.calibrations else None,
            }
            for check in _judged(self.recipe.checks)
        ]
        notes: dict[str, Any] = {"judges": judges} if judges else {}
        if self.unaided is not None and self.necessity is not None:
            notes["necessity"] = {**asdict(self.necessity), "model": self.unaided.identity.model}
        return notes

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, Case]]:
        """Every run. Raises ``TableReplaced`` where the runs are of other drafts than there are."""
        drafts = shard.workspace.tables.read(shard.key(f"{self.family}/drafts"), Draft)
        hints = {draft.trajectory_id: draft.hint for draft in drafts}
        runs, store = shard.joined(f"{self.family}/runs", Trajectory), shard.workspace.images
        if any(run.trajectory_id not in hints for _, run in runs):
            raise TableReplaced(shard.key(f"{self.family}/drafts"))
        return [(sample, Case(sample, run, json.loads(hints[run.trajectory_id]), store)) for sample, run in runs]

    def paid_before(self, row: Case) -> Usage:
        return row.trajectory.usage

    async def measure(self, _sample: Sample, row: Case) -> Trajectory | Rejection:
        """The run with every verdict; a reject keeps what was paid."""
        trajectory, spent = row.trajectory, UsageMeter()
        try:
            checks = await self._verdicts(row, spent)
        except Exception as error:  # noqa: BLE001  # classified by row_error
            charged = replace(trajectory, usage=trajectory.usage + spent.usage)
            return Rejection(row_error(error), charged)
        return replace(trajectory, checks=checks, usage=trajectory.usage + spent.usage)

    async def _verdicts(self, case: Case, spent: UsageMeter) -> tuple[Check, ...]:
        """Necessity comes last, so that nothing is paid for it where the row is rejected anyway."""
        voter = EmbeddedJudge() if self.judge is None else PolicyJudge(self.judge, n_votes=self.n_votes)
        questions = {check.name: check.question.name for check in _judged(self.recipe.checks)}
        thresholds = {questions[name]: frozen.calibration.threshold for name, frozen in self.calibrations.items()}
        judge = CountedJudge(voter, thresholds)
        checks, pending = list[Check](), list[AnswersPending]()
        try:
            for check in self.recipe.checks:
                try:
                    checks.append(await _verdict(check, case, judge))
                except AnswersPending as error:  # all judges of a row go into one batch
                    pending.append(error)
            if pending:
                raise pending[0]
        finally:
            spent.usage += judge.usage
        if self.unaided is not None and self.necessity is not None and all(check.passed for check in checks):
            scores = await blind_scores(case, self.unaided, self.necessity)
            spent.usage += scores.usage
            checks += necessity_checks(scores, self.necessity)
        return tuple(checks)


def _judged(checks: Sequence[CheckFunction]) -> list[JudgedCheck]:
    return [check for check in checks if isinstance(check, JudgedCheck)]


async def _verdict(check: CheckFunction, case: Case, judge: Judge) -> Check:
    if isinstance(check, JudgedCheck):
        return await check(case, judge)
    return await asyncio.to_thread(check, case)
