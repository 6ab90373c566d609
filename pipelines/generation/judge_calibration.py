"""A judge against people: the rows of a file of labels found in the workspace, and the judge asked about each, on the
ledger: a stopped run resumes, and votes that a family has paid for are not paid again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.generation.stage import SAMPLES, row_error
from darkroom.pipelines.models.policies import Policy, RecordedPolicy
from darkroom.pipelines.records import Draft, Reject, Sample, Trajectory, Usage
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.stage_runs import Progress, map_rows
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification import checks
from darkroom.pipelines.verification.calibration_store import (
    CalibrationStore,
    StoredCalibration,
    inline_case,
    stored_calibration,
)
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import JudgedCheck
from darkroom.pipelines.verification.judges import EmbeddedJudge, Judge, PolicyJudge
from darkroom.pipelines.verification.judges.calibration import Label, label_reject, read_labels
from darkroom.pipelines.verification.judges.judge import CountedJudge
from darkroom.sandbox.errors import UserError


@dataclass(frozen=True, slots=True)
class JudgedLabel:
    """A labelled row and the judge's share of yes votes on it."""

    label: Label
    score: float


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Result of a file of labels: the calibration and its path, the rows behind it, the lines without use."""

    frozen: StoredCalibration
    path: StorePath
    rows: Sequence[JudgedLabel]
    rejects: Sequence[Reject]
    n_lines: int
    n_other: int
    usage: Usage


def judged_checks() -> dict[str, JudgedCheck]:
    """Every check that asks a judge, by name: the toolkit's, and those of the recipes."""
    bundled = [judged for judged in vars(checks).values() if isinstance(judged, JudgedCheck)]
    recipes = [check for recipe in load_recipes().values() for check in recipe.checks if isinstance(check, JudgedCheck)]
    return {check.name: check for check in [*bundled, *recipes]}


def calibrate_judge(
    workspace: Workspace,
    name: str,
    path: Path,
    *,
    policy: Policy | None = None,
    n_votes: int = 1,
    target_precision: float | None = None,
    progress: Progress | None = None,
) -> Calibrated:
    """Asks the judge of the check ``name`` about every labelled row and writes its calibration, which families use.
    ``policy`` None: the embedded judge. Raises ``UserError``, ``PolicyUnavailable`` and ``CalibrationError`` before."""
    checks = judged_checks()
    if name not in checks:
        raise UserError(f"there is no judge {name!r}; there are {', '.join(sorted(checks))}")
    check = checks[name]
    labels = read_labels(path, name)
    rows = _Rows(workspace)
    recorded = None if policy is None else RecordedPolicy(policy, workspace.ledger)
    judge: Judge = EmbeddedJudge() if recorded is None else PolicyJudge(recorded, n_votes=n_votes)
    counted = CountedJudge(judge)

    async def ask_all() -> list[JudgedLabel | Reject]:
        async with recorded or nullcontext():
            if recorded is not None:
                await recorded.check()
            return await map_rows(
                labels.labels,
                lambda label: _ask(label, check, counted, rows),
                concurrency=recorded.concurrency if recorded else 1,
                progress=progress,
            )

    results = asyncio.run(ask_all())
    judged = [row for row in results if isinstance(row, JudgedLabel)]
    rejects = [*labels.rejects, *(row for row in results if isinstance(row, Reject))]
    by_people, scores = [row.label for row in judged], [row.score for row in judged]
    frozen = stored_calibration(check, judge, by_people, scores, labelled=path.name, target_precision=target_precision)
    written = CalibrationStore(workspace.calibrations).write(frozen)
    return Calibrated(frozen, written, judged, rejects, labels.n_lines, labels.n_other, counted.usage)


async def _ask(label: Label, check: JudgedCheck, judge: Judge, rows: _Rows) -> JudgedLabel | Reject:
    try:
        verdict = await check.ask(rows.case(label), judge)
        if not verdict.n_trials:
            raise RowError(Reason.NOT_APPLICABLE, f"the judge is not asked about this row: {verdict.detail}")
    except Exception as error:  # noqa: BLE001  # classified by row_error
        return label_reject(row_error(error), label.where, label.line.model_dump_json(), label.line)
    return JudgedLabel(label, verdict.score or 0.0)


@dataclass(slots=True)
class _Rows:
    """The runs of the workspace's families, as cases; a family's tables are read when it is first asked for."""

    workspace: Workspace
    recipes: Mapping[str, Recipe] = field(default_factory=load_recipes)
    _cases: dict[str, dict[str, Case]] = field(default_factory=dict)

    def case(self, label: Label) -> Case:
        """The row that a label is about. Raises ``RowError`` (row_unknown)."""
        if (line := label.line).question is not None:
            return inline_case(label, self.workspace.images)
        if line.family not in self.recipes:
            raise RowError(Reason.ROW_UNKNOWN, f"there is no family {line.family!r}")
        if (case := self._family(line.family).get(line.row)) is None:
            raise RowError(Reason.ROW_UNKNOWN, f"no run of {line.family} is or comes from {line.row!r}")
        return case

    def _family(self, family: str) -> dict[str, Case]:
        if family not in self._cases:
            self._cases[family] = {}
            for key in self.workspace.tables.keys((family, "runs")):
                for case in self._of(key):
                    row = f"{case.sample.source}:{case.sample.source_row}"
                    self._cases[family] |= {case.trajectory.trajectory_id: case, row: case}
        return self._cases[family]

    def _of(self, key: TableKey) -> Iterator[Case]:
        tables = self.workspace.tables
        samples = {sample.sample_id: sample for sample in tables.read(TableKey(SAMPLES, key.partition), Sample)}
        drafts = tables.read(TableKey((key.asset[0], "drafts"), key.partition), Draft)
        hints = {draft.trajectory_id: json.loads(draft.hint) for draft in drafts}
        for run in tables.read(key, Trajectory):
            if run.sample_id in samples and run.trajectory_id in hints:  # else its table is older than theirs
                yield Case(samples[run.sample_id], run, hints[run.trajectory_id], self.workspace.images)
