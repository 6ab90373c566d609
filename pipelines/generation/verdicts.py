"""A family's verdicts: its checks, their judges with their calibrations, and whether rows need image and tools."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

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
            for check in judged_checks(self.recipe)
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
            return Rejection(row_error(error), replace(trajectory, usage=trajectory.usage + spent.usage))
        return replace(trajectory, checks=checks, usage=trajectory.usage + spent.usage)

    async def _verdicts(self, case: Case, spent: UsageMeter) -> tuple[Check, ...]:
        """Necessity comes last, so that nothing is paid for it where the row is rejected anyway."""
        questions = {check.name: check.question.name for check in judged_checks(self.recipe)}
        thresholds = {questions[name]: frozen.calibration.threshold for name, frozen in self.calibrations.items()}
        judge = CountedJudge(voter_of(self.judge, self.n_votes), thresholds)
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


def with_leak_judge(recipe: Recipe) -> Recipe:
    """The recipe with ``judge_leak`` as its last check, unless it has it."""
    return recipe if judge_leak in recipe.checks else replace(recipe, checks=(*recipe.checks, judge_leak))


def calibrations_of(recipe: Recipe, judge: Judge, workspace: Workspace) -> dict[str, StoredCalibration]:
    """Calibrations of ``judge`` by the check's name; missing ones of the embedded judge are made."""
    store, judged = CalibrationStore(workspace.calibrations), judged_checks(recipe)
    for check in judged if isinstance(judge, EmbeddedJudge) else ():
        store.add_bundled(check, workspace.images)
    return {check.name: frozen for check in judged if (frozen := store.of(check, judge))}


def voter_of(judge: Policy | None, n_votes: int) -> Judge:
    """The judge that a policy is; None: the embedded one."""
    return EmbeddedJudge() if judge is None else PolicyJudge(judge, n_votes=n_votes)


def judged_checks(recipe: Recipe) -> list[JudgedCheck]:
    return [check for check in recipe.checks if isinstance(check, JudgedCheck)]


async def _verdict(check: CheckFunction, case: Case, judge: Judge) -> Check:
    return await (check(case, judge) if isinstance(check, JudgedCheck) else asyncio.to_thread(check, case))
