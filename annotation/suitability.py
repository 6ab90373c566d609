"""Suitability labels by people: whether a drawing would help with a maths problem, blind to what models voted.

As of the models, it is asked of problems in words: where there is an image, there is nothing to draw.

The words of people are the table ``suitability_reviews``, one partition a source, and lines of ``suitability.jsonl``
for calibrating the vote against them (``pipelines/judges/labels.py``): yes is an ``accept``, no a ``reject``; who
cannot tell decides nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from annotation.campaign import Campaign
from annotation.handover import Handover, Synced
from annotation.journal import Journal
from annotation.pages import problem_page
from annotation.queues import MakeTask, Verdict, read_verdicts, sync_queue
from annotation.source_samples import samples_of
from annotation.task_server import TaskServer
from pipelines.digest import digest
from pipelines.judges.calibration import Calibration
from pipelines.records import Sample, SuitabilityReview, to_row
from pipelines.rl.agreement import agreement, reviews_key
from pipelines.rl.shard import Shard
from pipelines.rl.suitability import VOTES
from pipelines.stages import Outcome, Report, run_stage
from pipelines.tables import TableKey
from pipelines.whole import write_whole
from pipelines.workspace import Workspace

ROUND = "suitability"
CHECK = "suitability"
"""The check that the label lines are about."""
LABELS = {"yes": "accept", "no": "reject"}


@dataclass(frozen=True, slots=True)
class SuitabilityQueue:
    """The problems of one source: its samples that have no image, of one ``category`` if one is named."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    source: str
    category: str = ""

    @property
    def key(self) -> TableKey:
        """Where people's words lie."""
        return reviews_key(self.source)

    @property
    def labels(self) -> Path:
        """Where the lines for calibrating lie: those of all sources."""
        return self.workspace.annotation / "suitability.jsonl"

    def sync(self, server: TaskServer, *, n_rows: int | None = None) -> Synced:
        """Hands out ``n_rows`` problems (None: all), chosen by the campaign's seed, and takes in what people said.

        A larger number later keeps those that were chosen before. Raises ``AnnotationFault``.
        """
        problems = {sample.sample_id: sample for sample in self._problems()}
        ranked = sorted(problems, key=lambda sample_id: digest([self.campaign.seed, ROUND, sample_id]))
        items: dict[str, MakeTask] = {row: partial(_task, problems[row]) for row in ranked[:n_rows]}
        return sync_queue(Handover(self.journal, server, self.campaign.name), ROUND, items)

    def materialize(self) -> Report:
        """The source's table, and the label lines, as the journal has them now."""
        verdicts = read_verdicts(self.journal, ROUND).verdicts
        ours = {sample.sample_id for sample in self._problems()}
        rows = [_review(verdict) for verdict in verdicts if verdict.item_id in ours]
        lines = [_label(verdict) for verdict in verdicts if verdict.chosen in LABELS]
        write_whole(self.labels, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        inputs = digest([to_row(row) for row in rows])
        perform = partial(Outcome, rows, (), len(rows))
        return run_stage(self.workspace.tables, self.key, SuitabilityReview, inputs=inputs, perform=perform)

    def agreement(self) -> Calibration:
        """The models' vote on this source against people, by majority: kappa with its interval.

        Raises ``CalibrationFault`` when fewer than 20 problems have both a vote and a label.
        """
        tables = self.workspace.tables
        paths = sorted(tables.root.joinpath(VOTES).glob(f"{self.source}-[0-9]*.parquet"))
        names = [path.stem for path in paths if not path.name.endswith(".rejects.parquet")]
        return agreement([Shard(self.workspace, name) for name in names], [self.source])

    def counts(self) -> Counter[str]:
        """Of how many problems people said yes, no, or could not tell."""
        return Counter(row.verdict for row in self.workspace.tables.read(self.key, SuitabilityReview))

    def _problems(self) -> Iterator[Sample]:
        rows = samples_of(self.workspace.tables, self.source)
        wanted = (row for row in rows if not self.category or row.category == self.category)
        return (row for row in wanted if not row.images and not row.videos)


def _task(sample: Sample) -> dict[str, Any]:
    return {"page": problem_page(sample)}


def _review(verdict: Verdict) -> SuitabilityReview:
    return SuitabilityReview(
        sample_id=verdict.item_id,
        verdict=cast(Any, verdict.chosen),
        comment=verdict.comment,
        reviewer=verdict.person,
        at=verdict.at,
        lead_seconds=verdict.lead_seconds,
    )


def _label(verdict: Verdict) -> dict[str, str]:
    return {
        "row": verdict.item_id,
        "check": CHECK,
        "verdict": LABELS[verdict.chosen],
        "reviewer": verdict.person,
        "reason": verdict.comment,
    }
