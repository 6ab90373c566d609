"""What a journal holds: demands, tasks, revisions, and the work made of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from darkroom.pipelines.records.digest import digest

DEMAND_COLUMNS = "round, item_id, attempt, serial, base_annotation, base_revision, gold, overlap, n_wanted, bases"


class Demand(NamedTuple):
    """Requested work: a round of an item. ``base`` is the revision that it builds on, frozen from then on."""

    round: str
    item_id: str
    attempt: int
    serial: int
    """Counts repetitions of a round after invalid submissions."""
    base_annotation: int = 0
    base_revision: str = ""
    planted_error: str = ""
    """Its kind; empty for real work."""
    overlap: int = 1
    """Annotations that complete its task: ``n_wanted``, and one per excluded annotator."""
    n_wanted: int = 1
    """People who are to answer it, each on their own."""
    bases: str = ""
    """Of a round that several people judged: JSON of [annotation, revision] of all but the first."""

    def key(self, campaign: str) -> str:
        """The name of its task on the server; opaque to annotators."""
        return digest([campaign, self.round, self.item_id, self.attempt, self.serial, self.planted_error])[:20]


class Revision(NamedTuple):
    """One state of one annotation; ``digest`` covers what people can change."""

    seq: int
    annotation_id: int
    digest: str
    task_id: int
    raw: Mapping[str, Any]
    roles: tuple[str, ...] | None = None
    """Of the signer, from the hand-out of the task to the submission; None before accounts were pulled."""


class RoundProject(NamedTuple):
    """The project of a round: its number on the server, the last task found, and when changes were last pulled."""

    project_id: int
    last_task: int
    watermark: str


class StoredTask(NamedTuple):
    """A task as it was handed out."""

    task_id: int
    key: str
    data: str
    """Digest of its data; empty if a version before terms handed it out."""
    overlap: int
    n_wanted: int
    n_submissions: int

    @property
    def is_finished(self) -> bool:
        return self.n_submissions >= self.n_wanted


@dataclass(slots=True)
class Work:
    """A demand with its task, if there is one, and all revisions of its annotations, in the order of pulling."""

    demand: Demand
    task_id: int | None
    project_id: int | None
    revisions: list[Revision] = field(default_factory=list)
    terms: str = ""
    """Digest of its terms; empty for a queue's, and for a task of an older version until the next sync."""

    @property
    def annotations(self) -> list[list[Revision]]:
        """The states of each annotation, in the order of pulling; oldest annotation first."""
        by_annotation: dict[int, list[Revision]] = {}
        for revision in self.revisions:
            by_annotation.setdefault(revision.annotation_id, []).append(revision)
        return [by_annotation[annotation_id] for annotation_id in sorted(by_annotation)]


def read_works(rows: Iterable[Sequence[Any]]) -> list[Work]:
    """The work of one item from the rows of ``Journal.works``."""
    works: dict[str, Work] = {}
    n_columns = len(Demand._fields)
    for key, *columns in rows:
        terms, task_id, project_id, *revision_columns = columns[n_columns:]
        work = works.setdefault(key, Work(Demand(*columns[:n_columns]), task_id, project_id, terms=terms))
        seq, annotation_id, revision_digest, entered_in, raw, roles, deleted = revision_columns
        if seq is not None and deleted is None:
            frozen = None if roles is None else tuple(filter(None, roles.split(",")))
            revision = Revision(seq, annotation_id, revision_digest, entered_in, json.loads(raw), frozen)
            work.revisions.append(revision)
    return list(works.values())


def frozen_bases(works: Iterable[Work]) -> dict[int, str]:
    """The revisions that later rounds build on, by annotation."""
    frozen: dict[int, str] = {}
    for work in works:
        frozen[work.demand.base_annotation] = work.demand.base_revision
        frozen.update(json.loads(work.demand.bases or "[]"))
    return frozen


def joined_roles(roles: Sequence[str] | None) -> str | None:
    """Roles as a column holds them."""
    return None if roles is None else ",".join(roles)


def revision_digest(annotation: Mapping[str, Any]) -> str:
    """Covers what a person can change ("2 minutes ago" is not part of it), and the editor, if it is not the author:
    the server sets that a moment after the annotation."""
    fields = ("result", "was_cancelled", "completed_by", "lead_time", "ground_truth")
    editor = annotation.get("updated_by")
    foreign_editor = None if editor == annotation.get("completed_by") else editor
    return digest([{name: annotation.get(name) for name in fields}, foreign_editor])
