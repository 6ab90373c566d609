"""The tables that follow from the journal: annotations -> cross_checks -> accepted_annotations, and what was refused.

Each holds the records that have come so far, as they are now; a record that waits for somebody is quarantined with the
round that it waits for, one that people gave up is rejected with their reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from annotation.campaign import Campaign
from annotation.code import annotation_digest
from annotation.journal import Journal
from annotation.pool import POOL, reject_item
from annotation.pre_annotations import PRE_ANNOTATIONS
from annotation.refusals import Refused
from annotation.rounds import State
from annotation.sync import states, walk_of
from pipelines.digest import digest
from pipelines.records import Annotated, PoolImage, PreAnnotation, Reject, Sample, Truth, TruthBox, to_row
from pipelines.rejects import Reason, RowFault
from pipelines.stages import Outcome, Report, run_stage
from pipelines.tables import TableKey
from pipelines.workspace import Workspace

ANNOTATIONS = TableKey(("annotations",), "all")
CROSS_CHECKS = TableKey(("cross_checks",), "all")
ACCEPTED = TableKey(("accepted_annotations",), "all")
REFUSED = TableKey(("refused_submissions",), "all")
ORDER = (ANNOTATIONS, CROSS_CHECKS, ACCEPTED)
RECORDED = "recorded"
"""The partition of what was taken in from a recording: a campaign in the same workspace keeps its own tables."""
PASSED = {"annotate": 0, "rework": 0, "cross_check": 1, "accept": 2}
"""How many of them a record has passed that is in this round."""


class Kept(NamedTuple):
    """An image of the pool and how far its record has come."""

    item: PoolImage
    state: State


class Reading(NamedTuple):
    """The whole campaign at one moment, and the journal's fingerprint of that moment."""

    fingerprint: str
    kept: list[Kept]


@dataclass(frozen=True, slots=True)
class AnnotationStages:
    """The stages of one campaign."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    task_url: Callable[[int, int], str]
    """Where a task (project, number) can be looked at."""
    partition: str = "all"

    def read(self) -> Reading:
        """Every image of the pool with its state. Raises ``TableMissing`` without a pool."""
        fingerprint = self.journal.fingerprint  # before the records: what comes in meanwhile is read again
        pool = self.workspace.tables.read(self.key(POOL), PoolImage)
        walk = walk_of(self.journal, self.campaign)
        return Reading(fingerprint, [Kept(item, state) for item, _, state in states(pool, self.journal, walk)])

    def key(self, table: TableKey) -> TableKey:
        """Where this campaign has that table."""
        return replace(table, partition=self.partition)

    def materialize(self, reading: Reading) -> dict[TableKey, Report]:
        """All of ``ORDER`` and ``REFUSED`` from one reading: the rows of each stage that have come further are the
        next one's. The reports are those tables'."""
        tables, written = self.workspace.tables, self.key(PRE_ANNOTATIONS)
        rules = self.campaign.model_dump(include={"name", "max_share", "max_rework"})
        pre_annotated = tables.fingerprint(written) if tables.exists(written) else ""
        pool = tables.fingerprint(self.key(POOL))
        inputs = digest([pool, pre_annotated, reading.fingerprint, rules, annotation_digest()])
        reports = {}
        for table in ORDER:
            perform = partial(self._perform, table, reading.kept)
            reports[table] = run_stage(tables, self.key(table), Annotated, inputs=inputs, perform=perform)
        refusals = partial(self._refusals, reading.kept)
        reports[REFUSED] = run_stage(tables, self.key(REFUSED), Reject, inputs=inputs, perform=refusals)
        return reports

    def _refusals(self, kept: Sequence[Kept]) -> Outcome[Reject]:
        """Submissions that do not count: each with its reason and the link to its task."""
        refused = [self._refused_row(item, one) for item in kept for one in item.state.refused]
        return Outcome(refused, (), len(refused))

    def _perform(self, key: TableKey, kept: Sequence[Kept]) -> Outcome[Annotated]:
        rows: list[Annotated] = []
        rejects: list[Reject] = []
        before = ORDER[ORDER.index(key) - 1] if key != ORDER[0] else None
        tables, written = self.workspace.tables, self.key(PRE_ANNOTATIONS)
        shown = {row.sha256 for row in tables.read(written, PreAnnotation)} if tables.exists(written) else set()
        incoming = [one for one in kept if before is None or has_come(one.state, before)]
        for one in incoming:
            if has_come(one.state, key):
                rows.append(annotated(one, pre_annotated=one.item.image.sha256 in shown))
            else:
                rejects.append(self._reject(one, key))
        return Outcome(rows, rejects, len(incoming), notes={"campaign": self.campaign.name})

    def _reject(self, kept: Kept, key: TableKey) -> Reject:
        state = kept.state
        given_up = state.stage == "rejected"
        evidence = state.reason if given_up else f"waits for the round {state.round}, attempt {state.attempt + 1}"
        if state.skipped_by:
            evidence += f"; skipped by {len(state.skipped_by)}"
        if state.history:
            evidence += f"; last seen at {self._link(kept)}"
        fault = RowFault(Reason.REJECTED_BY_PEOPLE if given_up else Reason.WAITING, evidence)
        row = {"image": to_row(kept.item.image), "history": [to_row(event) for event in state.history]}
        return reject_item(kept.item, fault, stage=key.asset[0], row=row)

    def _link(self, kept: Kept) -> str:
        last = kept.state.history[-1]
        project = self.journal.project(last.round)
        return self.task_url(project[0] if project else 0, last.task_id)

    def _refused_row(self, kept: Kept, one: Refused) -> Reject:
        link = self.task_url(one.project_id, one.task_id)
        fault = RowFault(one.reason, f"{one.evidence} ({link}, annotation {one.annotation_id})")
        row = {**one._asdict(), "reason": one.reason.value, "image": kept.item.image.sha256}
        return reject_item(kept.item, fault, stage=one.round, row=row)


def has_come(state: State, key: TableKey) -> bool:
    """Whether the record, as it is now, was written, was checked, was accepted; one that was given up, before that."""
    passed = len(ORDER) if state.stage == "accepted" else PASSED[state.round]
    return passed > ORDER.index(key)


def annotated(kept: Kept, *, pre_annotated: bool) -> Annotated:
    """The record as it stands."""
    fields = kept.state.fields
    assert fields is not None, "a record that was written has fields"
    image = kept.item.image
    return Annotated(
        image=image,
        source=kept.item.source,
        source_row=kept.item.source_row,
        license=kept.item.license,
        question=fields.question,
        answer=fields.answer,
        category=fields.category,
        count=fields.count,
        boxes=tuple(TruthBox("target", *box) for box in fields.boxes),
        attempt=kept.state.attempt,
        pre_annotated=pre_annotated,
        history=tuple(kept.state.history),
    )


def read_accepted(workspace: Workspace) -> list[Sample]:
    """The accepted records as samples: those of the workspace's own campaign; where it has none, those of a recording.

    Empty where neither was materialised.
    """
    tables = workspace.tables
    for key in (ACCEPTED, replace(ACCEPTED, partition=RECORDED)):
        if tables.exists(key) and tables.n_rows(key):
            campaign = tables.facts(key)["notes"]["campaign"]
            return [to_sample(row, campaign=campaign) for row in tables.read(key, Annotated)]
    return []


def to_sample(row: Annotated, *, campaign: str) -> Sample:
    """An accepted record as a sample: the question, its answer and the boxes, without people's names."""
    content = {
        "images": [row.image.sha256],
        "question": row.question,
        "answer": row.answer,
        "boxes": [to_row(box) for box in row.boxes],
    }
    return Sample(
        sample_id=digest(content),
        source=f"annotation/{campaign}",
        source_row=row.source_row,
        license=row.license,
        images=(row.image,),
        question=row.question,
        choices=(),
        answer=row.answer,
        truth=Truth(boxes=row.boxes, count=row.count),
        category=row.category,
    )
