"""From trajectories to a shipped dataset: all partitions of a family in one folder, each row once, with its card.

A family's quota takes exactly so many rows (``pipelines/selection.py``); no image crosses the splits, in any family
(``pipelines/splits.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipelines.card import CARD_TEMPLATE
from pipelines.digest import digest
from pipelines.engine import SAMPLES
from pipelines.export import Shipped
from pipelines.judging import judging_fingerprint
from pipelines.recipes.base import Recipe
from pipelines.records import Reject, Sample, Trajectory, to_row
from pipelines.rejects import Reason, reject
from pipelines.reviews import read_reviews, review_checks
from pipelines.screening import Screening
from pipelines.selection import Candidate, difficulty, select
from pipelines.shipment import samples_of, ship
from pipelines.splits import Splits, grouped
from pipelines.stages import Outcome, Report, code_digest, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

ASSET = ("sft_dataset",)


def publish(
    workspace: Workspace,
    recipe: Recipe,
    partitions: Sequence[str],
    *,
    n_rows: int | None = None,
    validation_share: float = 0.0,
    n_replayed: int | None = 0,
    screening: Screening | None = None,
) -> tuple[Report, Shipped]:
    """Ships the family's trajectories of those ``partitions`` that are materialised, in their order.

    A trajectory that an earlier partition holds as well (two sources with the same sample) is a ``duplicate`` reject;
    beyond ``n_rows`` (None: all) it is ``not_selected``. ``screening`` takes out near-duplicates and rows of
    benchmarks; give the same one to all families. The first ``n_replayed`` rows (None: all) are executed once more from
    what was written, and the card says how many came out the same.
    """
    screening = screening or Screening(workspace)
    keys = [TableKey((recipe.family, "trajectories"), partition) for partition in partitions]
    there = [key for key in keys if workspace.tables.exists(key)]
    splits = _splits(workspace, partitions, validation_share)
    inputs = _inputs(
        workspace, recipe, there, [n_rows, validation_share, splits.groups, screening.fingerprint, n_replayed]
    )
    key = TableKey(ASSET, recipe.family)
    report = run_stage(
        workspace.tables,
        key,
        Trajectory,
        inputs=inputs,
        perform=lambda: _gather(workspace, recipe, there, n_rows, screening),
    )
    return report, ship(workspace, recipe, there, report, inputs=inputs, splits=splits, n_replayed=n_replayed)


def _inputs(workspace: Workspace, recipe: Recipe, there: Sequence[TableKey], settings: object) -> str:
    tables = workspace.tables
    fingerprints = [
        [key.partition, tables.fingerprint(key), tables.fingerprint(TableKey(SAMPLES, key.partition))] for key in there
    ]
    judging = judging_fingerprint(tables, recipe.family, [key.partition for key in there])
    reviews = [to_row(review) for review in read_reviews(tables, recipe.family)]
    rest = [judging, reviews, code_digest(), CARD_TEMPLATE, settings]
    return digest(["sft_dataset", recipe.family, recipe.digest, fingerprints, *rest])


def _splits(workspace: Workspace, partitions: Sequence[str], validation_share: float) -> Splits:
    """Over the samples of all partitions and so of all families: what one family trains on, none validates on."""
    keys = [TableKey(SAMPLES, partition) for partition in partitions]
    there = [key for key in keys if workspace.tables.exists(key)]
    samples = (sample for key in there for sample in workspace.tables.read(key, Sample))
    return grouped(samples, validation_share=validation_share)


def _gather(
    workspace: Workspace, recipe: Recipe, keys: Sequence[TableKey], n_rows: int | None, screening: Screening
) -> Outcome[Trajectory]:
    kept: dict[str, Trajectory] = {}
    samples: dict[str, Sample] = {}
    rejects: list[Reject] = []
    n_in = 0
    for key in keys:
        there = samples_of(workspace, [key])
        samples |= there
        for trajectory in workspace.tables.read(key, Trajectory):
            n_in += 1
            if trajectory.trajectory_id in kept:
                said = f"an earlier partition holds the same trajectory; this one is in {key.partition}"
                rejects.append(_taken_out(recipe, trajectory, Reason.DUPLICATE, said))
            elif trajectory.sample_id not in there:
                said = f"its sample is no longer in {key.partition}; materialise {recipe.family} for that partition"
                rejects.append(_taken_out(recipe, trajectory, Reason.STALE, said))
            else:
                kept[trajectory.trajectory_id] = trajectory
    screened = screening.screen(recipe.family, [(samples[row.sample_id], row) for row in kept.values()])
    for row_id, fault in screened.faults.items():
        rejects.append(_taken_out(recipe, kept.pop(row_id), fault.reason, fault.evidence))
    rejects += _reviewed(workspace, recipe, kept)
    if n_rows is not None:
        rejects += _beyond(recipe, kept, samples, n_rows)
    return Outcome(list(kept.values()), rejects, n_in)


def _reviewed(workspace: Workspace, recipe: Recipe, kept: dict[str, Trajectory]) -> list[Reject]:
    """Gives rows that experts looked at their check, and takes those that they reject out of ``kept``."""
    rejects = []
    for row_id, check in review_checks(read_reviews(workspace.tables, recipe.family)).items():
        if row_id not in kept:
            continue
        kept[row_id] = replace(kept[row_id], checks=(*kept[row_id].checks, check))
        if not check.passed:
            rejects.append(_taken_out(recipe, kept.pop(row_id), Reason.CHECK_FAILED, check.detail, check=check.name))
    return rejects


def _beyond(recipe: Recipe, kept: dict[str, Trajectory], samples: dict[str, Sample], n_rows: int) -> list[Reject]:
    """Takes what the quota does not select out of ``kept``."""
    candidates = [
        Candidate(row_id, samples[row.sample_id].category, difficulty(samples[row.sample_id]))
        for row_id, row in kept.items()
    ]
    selected = select(candidates, n_rows)
    said = f"the quota of {recipe.family} is {n_rows} rows, and others were selected"
    out = [kept.pop(candidate.row_id) for candidate in candidates if candidate.row_id not in selected]
    return [_taken_out(recipe, row, Reason.NOT_SELECTED, said) for row in out]


def _taken_out(recipe: Recipe, trajectory: Trajectory, reason: Reason, evidence: str, *, check: str = "") -> Reject:
    return reject(
        reason,
        evidence,
        stage="sft_dataset",
        row=to_row(trajectory),
        family=recipe.family,
        check=check,
        sample_id=trajectory.sample_id,
        trajectory_id=trajectory.trajectory_id,
    )
