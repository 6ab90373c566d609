"""Verification of samples that others made: people say whether image, question and answer belong together.

The verdicts are the table ``verifications``, one partition a source; samples that nobody has seen are not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from annotation.campaign import Campaign
from annotation.handover import Handover, Synced
from annotation.journal import Journal
from annotation.queues import MakeTask, Verdict, read_verdicts, sync_queue
from annotation.source_samples import samples_of
from annotation.task_server import TaskServer
from annotation.tasks import plain
from pipelines.digest import digest
from pipelines.records import Sample, Verification, to_row
from pipelines.rl import labels
from pipelines.stages import Outcome, Report, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

ROUND = "verify"
ASSET = ("verifications",)
DIVIDED = "**Others were divided about this answer:** look closely."


class HandedOut(NamedTuple):
    """What became of a list of samples."""

    synced: Synced
    left_out: tuple[str, ...]
    """Samples that nobody can be shown: unknown ones, and those without an image."""


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

    def sync(self, studio: TaskServer, *, n_rows: int | None = None) -> Synced:
        """Hands out ``n_rows`` samples with an image (None: all), chosen by the campaign's seed, and takes verdicts in.

        A larger number later keeps those that were chosen before. Raises ``AnnotationFault``.
        """
        samples = {sample.sample_id: sample for sample in self._samples()}
        ranked = sorted(samples, key=lambda sample_id: digest([self.campaign.seed, "verify", sample_id]))
        return self._sync(studio, {row: partial(_task, samples[row]) for row in ranked[:n_rows]})

    def sync_disputed(self, studio: TaskServer, disputed: Mapping[str, str]) -> HandedOut:
        """Hands out exactly these samples (``sample_id``: why), and takes verdicts in.

        People see that the label is disputed; the reason goes with the task, and is not shown: another's answer would
        sway them. What was handed out before stays as it is. Raises ``AnnotationFault``.
        """
        samples = {sample.sample_id: sample for sample in self._samples()}
        items: dict[str, MakeTask] = {
            row: partial(_task, samples[row], why) for row, why in disputed.items() if row in samples
        }
        left_out = tuple(row for row in disputed if row not in samples)
        return HandedOut(self._sync(studio, items), left_out)

    def disputed(self) -> dict[str, str]:
        """The source's samples that ``checked_labels`` set aside as disputed, with the evidence; none without it."""
        tables = self.workspace.tables
        paths = sorted(tables.root.joinpath(labels.ASSET).glob(f"{self.source}-[0-9]*.rejects.parquet"))
        keys = [TableKey((labels.ASSET,), path.name.removesuffix(".rejects.parquet")) for path in paths]
        return {row: why for key in keys for row, why in labels.disputed(tables, key).items()}

    def _sync(self, studio: TaskServer, items: Mapping[str, MakeTask]) -> Synced:
        return sync_queue(Handover(self.journal, studio, self.campaign.name), ROUND, items)

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
        return (sample for sample in samples_of(self.workspace.tables, self.source) if sample.images)


def _task(sample: Sample, why: str = "") -> dict[str, Any]:
    choices = "".join(f"\n\n{plain(choice)}" for choice in sample.choices)
    shown = f"**Question:** {plain(sample.question)}{choices}\n\n**Answer:** {plain(sample.answer)}"
    task = {"image": f"/darkroom/images/{sample.images[0].sha256}", "question_shown": shown}
    return task | {"question_shown": f"{shown}\n\n{DIVIDED}", "disputed": why} if why else task


def _verification(verdict: Verdict) -> Verification:
    return Verification(
        sample_id=verdict.item_id,
        verdict=cast(Any, verdict.chosen),
        comment=verdict.comment,
        reviewer=verdict.person,
        at=verdict.at,
        lead_seconds=verdict.lead_seconds,
    )
