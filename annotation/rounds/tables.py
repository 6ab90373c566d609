"""The tables derived from the journal: annotations -> cross_checks -> accepted_annotations, and refused_submissions.

Each holds the records that reached its stage, in their current state. A waiting record is quarantined with the round it
waits for; a rejected one has the reasons.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

from darkroom.annotation.label_studio.server import find_task_url
from darkroom.annotation.rounds.campaign import ANNOTATION_CODE, Campaign, annotation_digest
from darkroom.annotation.rounds.image_pool import POOL, reject_item, require_pool
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.pre_annotations import PRE_ANNOTATIONS
from darkroom.annotation.rounds.submissions import InvalidSubmission, Record, RecordState
from darkroom.annotation.rounds.sync import record_states
from darkroom.pipelines.generation.stage import Rejection, Shard, Stage
from darkroom.pipelines.records import Annotated, PoolImage, PreAnnotation, Reject, to_row
from darkroom.pipelines.records.annotation import Annotators
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.stage_runs import Outcome, StageReport, run_stage
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

ANNOTATIONS, CROSS_CHECKS = TableKey(("annotations",), "all"), TableKey(("cross_checks",), "all")
ACCEPTED, REFUSED = TableKey(("accepted_annotations",), "all"), TableKey(("refused_submissions",), "all")
ORDER = (ANNOTATIONS, CROSS_CHECKS, ACCEPTED)
RECORDED = "recorded"
"""The partition of imported recordings, separate from a campaign in the same workspace."""
PASSED = {"annotate": 0, "rework": 0, "cross_check": 1, "accept": 2}
"""The number of tables that a record in this round has passed."""


class CampaignSnapshot(NamedTuple):
    """All records of a campaign, without their tasks, and the journal's fingerprint at that time."""

    fingerprint: str
    records: list[Record]
    pre_annotated: frozenset[str]
    """Images whose first task had a policy's record."""


@dataclass(frozen=True, slots=True)
class AnnotationStages:
    """The stages of one campaign."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    task_url: Callable[[int, int], str]
    partition: str = "all"
    annotators: Annotators = "people"

    @classmethod
    @contextmanager
    def of_workspace(cls, workspace: Workspace) -> Iterator[Self]:
        """The stages of the workspace's own campaign. Raises ``AnnotationError``."""
        with Journal(workspace.annotation) as journal:
            yield cls(workspace, Campaign.load(workspace.annotation), journal, find_task_url(workspace))

    def read(self) -> CampaignSnapshot:
        """Every image of the pool with its state. Raises ``AnnotationError`` without a pool."""
        require_pool(self.workspace.tables, self.key(POOL))
        fingerprint = self.journal.fingerprint  # before the records, so that concurrent entries are read again
        pool = self.workspace.tables.read(self.key(POOL), PoolImage)
        records = [record._replace(tasks=[]) for record in record_states(pool, self.journal, self.campaign)]
        key = self.key(PRE_ANNOTATIONS)
        rows = self.workspace.tables.read(key, PreAnnotation) if self.workspace.tables.exists(key) else []
        uses = dict.fromkeys((row.sha256 for row in rows), "all")  # an earlier version noted no use
        uses |= {r.item.image.sha256: r.state.pre_annotation for r in records if r.state.pre_annotation}
        shown = (image for image, use in uses.items() if use != "withheld")
        return CampaignSnapshot(fingerprint, records, frozenset(shown))

    def key(self, table: TableKey) -> TableKey:
        return replace(table, partition=self.partition)

    def materialize(self, snapshot: CampaignSnapshot) -> dict[TableKey, StageReport]:
        """All tables of ``ORDER``, and ``REFUSED``, from one snapshot; returns their reports."""
        tables, shard = self.workspace.tables, Shard(self.workspace, self.partition)
        reports = {key: shard.materialize(RecordTable(stages=self, snapshot=snapshot, table=key)) for key in ORDER}
        inputs = digest([tables.fingerprint(self.key(POOL)), snapshot.fingerprint, annotation_digest()])
        rows = [self._invalid_row(record, entry) for record in snapshot.records for entry in record.state.invalid]
        outcome = Outcome(rows, (), len(rows))
        reports[REFUSED] = run_stage(tables, self.key(REFUSED), Reject, inputs=inputs, perform=lambda: outcome)
        return reports

    def link(self, record: Record) -> str:
        last = record.state.history[-1]
        project = self.journal.project(last.round)
        return self.task_url(project.project_id if project else 0, last.task_id)

    def _invalid_row(self, record: Record, entry: InvalidSubmission) -> Reject:
        link = self.task_url(entry.project_id, entry.task_id)
        error = RowError(entry.reason, f"{entry.evidence} ({link}, annotation {entry.annotation_id})")
        row = {**entry._asdict(), "reason": entry.reason.value, "image": record.item.image.sha256}
        return reject_item(record.item, error, stage=entry.round, row=row)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTable(Stage[PoolImage, Record, Annotated]):
    """One table of ``ORDER``, from the records that reached the table before it."""

    stages: AnnotationStages
    snapshot: CampaignSnapshot
    table: TableKey

    kind: ClassVar[type[Annotated]] = Annotated
    code: ClassVar[Sequence[str]] = ANNOTATION_CODE

    @property
    def asset(self) -> str:
        return self.table.asset[0]

    @property
    def reads(self) -> Sequence[str]:
        pre_annotations = self.stages.key(PRE_ANNOTATIONS)
        return (*(pre_annotations.asset if self.stages.workspace.tables.exists(pre_annotations) else ()), *POOL.asset)

    @property
    def settings(self) -> Mapping[str, Any]:
        rules = self.stages.campaign.model_dump(include={"name", "max_share", "max_rework"})
        return {"journal": self.snapshot.fingerprint, **rules}

    @property
    def notes(self) -> Mapping[str, Any]:
        """The campaign's name, part of the samples' source, and who took part."""
        return {"campaign": self.stages.campaign.name, "annotators": self.stages.annotators}

    def rows(self, shard: Shard) -> Sequence[tuple[PoolImage, Record]]:
        index, records = ORDER.index(self.table), self.snapshot.records
        return [(r.item, r) for r in records if not index or has_reached(r.state, ORDER[index - 1])]

    async def measure(self, image: PoolImage, record: Record) -> Annotated | Rejection:
        """The record; a waiting or rejected one is a reject with its history."""
        if has_reached(record.state, self.table):
            return annotated(record, pre_annotated=image.image.sha256 in self.snapshot.pre_annotated)
        state = record.state
        is_rejected = state.stage == "rejected"
        evidence = state.reason if is_rejected else f"waits for the round {state.round}, attempt {state.attempt + 1}"
        if not is_rejected and state.verdicts:
            evidence += f"; {len(state.verdicts)} of {state.n_verdicts} verdicts"
        if state.skipped_by:
            evidence += f"; skipped by {len(state.skipped_by)}"
        if state.history:
            evidence += f"; last seen at {self.stages.link(record)}"
        error = RowError(Reason.REJECTED_BY_PEOPLE if is_rejected else Reason.WAITING, evidence)
        return Rejection(error, {"image": to_row(image.image), "history": [to_row(event) for event in state.history]})


def has_reached(state: RecordState, key: TableKey) -> bool:
    """Check that the record passed the table's stage; a rejected one counts up to its last round."""
    return (len(ORDER) if state.stage == "accepted" else PASSED[state.round]) > ORDER.index(key)


def annotated(record: Record, *, pre_annotated: bool) -> Annotated:
    item, state = record.item, record.state
    assert state.fields is not None, "a written record has fields"
    origin = {"image": item.image, "source": item.source, "source_row": item.source_row, "license": item.license}
    columns: dict[str, Any] = {**origin, **state.fields.columns, "attempt": state.attempt}
    return Annotated(**columns, pre_annotated=pre_annotated, history=tuple(state.history))
