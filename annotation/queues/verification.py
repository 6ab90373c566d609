"""Verification of public samples: people judge whether image, question and answer belong together.

The verdicts are the table ``verifications``, one partition per source; unseen samples are not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from annotation.label_studio.protocol import TaskServer
from annotation.queues.base import (
    MakeTask,
    QueueVerdict,
    read_verdicts,
    sample_ids,
    samples_of,
    sync_queue,
)
from annotation.rounds.campaign import Campaign
from annotation.rounds.journal import Journal
from annotation.rounds.label_studio_tasks import plain
from annotation.rounds.task_exchange import SyncCounts, TaskExchange
from pipelines.records import Sample, Verification
from pipelines.rl import labels
from pipelines.storage.stage import StageReport, store_rows
from pipelines.storage.tables import TableKey
from pipelines.storage.workspace import Workspace

ROUND = "verify"
ASSET = ("verifications",)
DISPUTED = "**This answer is disputed:** look closely."


class DisputedSync(NamedTuple):
    """The sync of a list of disputed samples."""

    counts: SyncCounts
    skipped: tuple[str, ...]
    """Unknown samples, and those without an image."""


@dataclass(frozen=True, slots=True)
class VerificationQueue:
    """The verification of one source's samples."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    source: str

    @property
    def key(self) -> TableKey:
        return TableKey(ASSET, self.source)

    def sync(self, server: TaskServer, *, n_rows: int | None = None) -> SyncCounts:
        """Pulls verdicts and hands out a seeded sample of ``n_rows`` samples with an image (None: all).

        A larger sample contains the smaller one. Raises ``AnnotationError``.
        """
        samples = {sample.sample_id: sample for sample in self._samples()}
        selected = sample_ids(samples, seed=self.campaign.seed, queue=ROUND, n_rows=n_rows)
        return self._sync(server, {row: partial(_task, samples[row]) for row in selected})

    def sync_disputed(self, server: TaskServer, disputed: Mapping[str, str]) -> DisputedSync:
        """Pulls verdicts and hands out exactly these samples (``sample_id``: why).

        People see that the label is disputed, but not the reason, which would bias them. Tasks handed out before stay
        unchanged. Raises ``AnnotationError``.
        """
        samples = {sample.sample_id: sample for sample in self._samples()}
        items: dict[str, MakeTask] = {
            row: partial(_task, samples[row], why) for row, why in disputed.items() if row in samples
        }
        skipped = tuple(row for row in disputed if row not in samples)
        return DisputedSync(self._sync(server, items), skipped)

    def disputed(self) -> dict[str, str]:
        """The source's samples that ``checked_labels`` found disputed, with the evidence; empty without that table."""
        tables = self.workspace.tables
        paths = sorted(tables.root.joinpath(labels.ASSET).glob(f"{self.source}-[0-9]*.rejects.parquet"))
        keys = [TableKey((labels.ASSET,), path.name.removesuffix(".rejects.parquet")) for path in paths]
        return {row: why for key in keys for row, why in labels.disputed(tables, key).items()}

    def _sync(self, server: TaskServer, items: Mapping[str, MakeTask]) -> SyncCounts:
        return sync_queue(TaskExchange(self.journal, server, self.campaign.name), ROUND, items)

    def materialize(self) -> StageReport:
        """The source's table of verdicts."""
        ours = {sample.sample_id for sample in self._samples()}
        rows = [_verification(row) for row in read_verdicts(self.journal, ROUND).verdicts if row.item_id in ours]
        return store_rows(self.workspace.tables, self.key, Verification, rows)

    def counts(self) -> Counter[str]:
        return Counter(row.verdict for row in self.workspace.tables.read(self.key, Verification))

    def _samples(self) -> Iterator[Sample]:
        return (sample for sample in samples_of(self.workspace.tables, self.source) if sample.images)


def _task(sample: Sample, why: str = "") -> dict[str, Any]:
    choices = "".join(f"\n\n{plain(choice)}" for choice in sample.choices)
    text = f"**Question:** {plain(sample.question)}{choices}\n\n**Answer:** {plain(sample.answer)}"
    task = {"image": f"/darkroom/images/{sample.images[0].sha256}", "question_shown": text}
    return task | {"question_shown": f"{text}\n\n{DISPUTED}", "disputed": why} if why else task


def _verification(verdict: QueueVerdict) -> Verification:
    return Verification(
        sample_id=verdict.item_id,
        verdict=cast(Any, verdict.verdict),
        comment=verdict.comment,
        reviewer=verdict.person,
        at=verdict.at,
        lead_seconds=verdict.lead_seconds,
    )
