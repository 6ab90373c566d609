"""Verification of samples that others made: people say whether image, question and answer belong together.

The verdicts are the table ``verifications``, one partition a source; samples that nobody has seen are not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from annotation.campaign import Campaign
from annotation.exchange import Exchange, Synced
from annotation.journal import Journal
from annotation.queues import MakeTask, Verdict, read_verdicts, sync_queue
from annotation.studio import Studio
from annotation.tasks import plain
from pipelines.digest import digest
from pipelines.engine import SAMPLES
from pipelines.records import Sample, Verification, to_row
from pipelines.stages import Outcome, Report, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

ROUND = "verify"
ASSET = ("verifications",)


@dataclass(frozen=True, slots=True)
class VerificationQueue:
    """The verification of one source's samples."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    source: str

    @property
    def key(self) -> TableKey:
        """Where the verdicts lie."""
        return TableKey(ASSET, self.source)

    def sync(self, studio: Studio, *, n_rows: int | None = None) -> Synced:
        """Hands out ``n_rows`` samples with an image (None: all), chosen by the campaign's seed, and takes verdicts in.

        A larger number later keeps those that were chosen before. Raises ``AnnotationFault``.
        """
        samples = {sample.sample_id: sample for sample in self._samples()}
        ranked = sorted(samples, key=lambda sample_id: digest([self.campaign.seed, "verify", sample_id]))
        items: dict[str, MakeTask] = {row: partial(_task, samples[row]) for row in ranked[:n_rows]}
        return sync_queue(Exchange(self.journal, studio, self.campaign.name), ROUND, items)

    def materialize(self) -> Report:
        """The source's table of verdicts, as the journal has them now."""
        ours = {sample.sample_id for sample in self._samples()}
        rows = [_verification(one) for one in read_verdicts(self.journal, ROUND).verdicts if one.item_id in ours]
        inputs = digest([to_row(row) for row in rows])
        perform = partial(Outcome, rows, (), len(rows))
        return run_stage(self.workspace.tables, self.key, Verification, inputs=inputs, perform=perform)

    def counts(self) -> Counter[str]:
        """How many samples were said to match, not to, or could not be told."""
        return Counter(row.verdict for row in self.workspace.tables.read(self.key, Verification))

    def _samples(self) -> Iterator[Sample]:
        tables = self.workspace.tables
        for path in sorted(tables.root.joinpath(*SAMPLES).glob(f"{self.source}-[0-9]*.parquet")):
            if not path.name.endswith(".rejects.parquet"):
                rows = tables.read(TableKey(SAMPLES, path.stem), Sample)
                yield from (sample for sample in rows if sample.images and sample.source == self.source)


def _task(sample: Sample) -> dict[str, Any]:
    choices = "".join(f"\n\n{plain(choice)}" for choice in sample.choices)
    shown = f"**Question:** {plain(sample.question)}{choices}\n\n**Answer:** {plain(sample.answer)}"
    return {"image": f"/darkroom/images/{sample.images[0].sha256}", "question_shown": shown}


def _verification(verdict: Verdict) -> Verification:
    return Verification(
        sample_id=verdict.item_id,
        verdict=cast(Any, verdict.chosen),
        comment=verdict.comment,
        reviewer=verdict.person,
        at=verdict.at,
        lead_seconds=verdict.lead_seconds,
    )
