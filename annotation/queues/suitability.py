"""Suitability labels by people: whether a drawing would help with a maths problem, without the models' votes.

Only for problems in words: where there is an image, there is nothing to draw. The labels go to the table
``suitability_reviews``, one partition per source, and to ``suitability.jsonl``, for calibrating the models' vote: yes
is an ``accept``, no a ``reject``; "cannot tell" is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from annotation.label_studio.protocol import TaskServer
from annotation.queues.base import (
    MakeTask,
    QueueVerdict,
    problem_page,
    read_verdicts,
    sample_ids,
    samples_of,
    sync_queue,
    write_labels,
)
from annotation.rounds.campaign import Campaign
from annotation.rounds.journal import Journal
from annotation.rounds.task_exchange import SyncCounts, TaskExchange
from pipelines.generation.stage import Shard
from pipelines.records import Sample, SuitabilityReview
from pipelines.rl.suitability import VOTES, agreement, reviews_key
from pipelines.storage.stage import StageReport, store_rows
from pipelines.storage.tables import TableKey
from pipelines.storage.workspace import Workspace
from pipelines.verification.judges.calibration import Calibration

ROUND = "suitability"
CHECK = "suitability"
"""The check that the labels are for."""
LABELS = {"yes": "accept", "no": "reject"}


@dataclass(frozen=True, slots=True)
class SuitabilityQueue:
    """The problems of one source: its samples without an image, optionally of one ``category``."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    source: str
    category: str = ""

    @property
    def key(self) -> TableKey:
        return reviews_key(self.source)

    @property
    def labels(self) -> Path:
        """The lines for calibrating, of all sources."""
        return self.workspace.annotation / "suitability.jsonl"

    def sync(self, server: TaskServer, *, n_rows: int | None = None) -> SyncCounts:
        """Pulls labels and hands out a seeded sample of ``n_rows`` problems (None: all).

        A larger sample contains the smaller one. Raises ``AnnotationError``.
        """
        problems = {sample.sample_id: sample for sample in self._problems()}
        selected = sample_ids(problems, seed=self.campaign.seed, queue=ROUND, n_rows=n_rows)
        items: dict[str, MakeTask] = {row: partial(_task, problems[row]) for row in selected}
        return sync_queue(TaskExchange(self.journal, server, self.campaign.name), ROUND, items)

    def materialize(self) -> StageReport:
        """The source's table, and the label lines."""
        verdicts = read_verdicts(self.journal, ROUND).verdicts
        ours = {sample.sample_id for sample in self._problems()}
        rows = [_review(verdict) for verdict in verdicts if verdict.item_id in ours]
        write_labels(self.labels, (_label(verdict) for verdict in verdicts if verdict.verdict in LABELS))
        return store_rows(self.workspace.tables, self.key, SuitabilityReview, rows)

    def agreement(self) -> Calibration:
        """The models' majority vote on this source against people: kappa with its interval.

        Raises ``CalibrationError`` when fewer than 20 problems have both a vote and a label.
        """
        tables = self.workspace.tables
        paths = sorted(tables.root.joinpath(VOTES).glob(f"{self.source}-[0-9]*.parquet"))
        names = [path.stem for path in paths if not path.name.endswith(".rejects.parquet")]
        return agreement([Shard(self.workspace, name) for name in names], [self.source])

    def counts(self) -> Counter[str]:
        return Counter(row.verdict for row in self.workspace.tables.read(self.key, SuitabilityReview))

    def _problems(self) -> Iterator[Sample]:
        rows = samples_of(self.workspace.tables, self.source)
        in_category = (row for row in rows if not self.category or row.category == self.category)
        return (row for row in in_category if not row.images and not row.videos)


def _task(sample: Sample) -> dict[str, Any]:
    return {"page": problem_page(sample)}


def _review(verdict: QueueVerdict) -> SuitabilityReview:
    return SuitabilityReview(
        sample_id=verdict.item_id,
        verdict=cast(Any, verdict.verdict),
        comment=verdict.comment,
        reviewer=verdict.person,
        at=verdict.at,
        lead_seconds=verdict.lead_seconds,
    )


def _label(verdict: QueueVerdict) -> dict[str, str]:
    return {
        "row": verdict.item_id,
        "check": CHECK,
        "verdict": LABELS[verdict.verdict],
        "reviewer": verdict.person,
        "reason": verdict.comment,
    }
