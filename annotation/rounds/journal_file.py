"""The file of a journal: its tables, the way from older schemas to today's, its lock and its transactions."""

import fcntl
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from darkroom.annotation import AnnotationError
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.storage_errors import sqlite_mend

SCHEMA = 3
"""Of the file (``pragma user_version``); 0 is a file of a version before terms, or a new one."""
TABLES = Path(__file__).with_name("journal.sql").read_text(encoding="utf-8")
_STEPS = {
    0: (
        "alter table demands add column terms text not null default ''",
        "alter table tasks add column data text not null default ''",
        "alter table tasks add column is_lost integer not null default 0",
        "alter table revisions add column roles text",
    ),
    1: (
        "alter table demands add column n_wanted integer not null default 1",
        "alter table demands add column bases text not null default ''",
    ),
    2: ("delete from settled",),  # nothing was touched yet: the states of all records are derived once
}
"""From each schema to the next; missing tables are created anyway."""
_MOST_KEYS = 500
"""In one query."""


class JournalFile:
    """A journal's database in a campaign's folder. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "journal.sqlite"
        self._db = open_journal(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One sync at a time; the kernel releases the lock when its holder dies. Raises ``AnnotationError``."""
        with self.path.with_suffix(".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AnnotationError("another sync of this campaign is running; wait until it has ended") from error
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and durable on exit."""
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def _write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self.transaction():
            self._db.executemany(statement, list(rows))

    def _by_key(self, query: str, keys: Sequence[str]) -> Iterator[Any]:
        for start in range(0, len(keys), _MOST_KEYS):
            batch = keys[start : start + _MOST_KEYS]
            yield from self._db.execute(f"{query} where key in ({','.join('?' * len(batch))})", batch)


def open_journal(path: Path) -> sqlite3.Connection:
    """The database, brought to today's schema. Raises ``AnnotationError`` for a damaged or newer file."""
    try:
        database = sqlite3.connect(path, timeout=60, isolation_level=None)
        database.execute("pragma journal_mode=wal")
        database.execute("pragma synchronous=full")
        version = _version(database)
        if version < SCHEMA:
            _migrate(database)
    except sqlite3.DatabaseError as error:
        mend = sqlite_mend(str(error)) or "restore it from a backup"
        raise AnnotationError(f"{path} cannot be opened ({error}). To do: {mend}") from error
    if version > SCHEMA:
        database.close()
        raise AnnotationError(
            f"{path} was written by a newer version of Darkroom (schema {version}, this one knows {SCHEMA}); upgrade "
            "Darkroom"
        )
    return database


def _version(database: sqlite3.Connection) -> int:
    version: int = database.execute("pragma user_version").fetchone()[0]
    return version


def _migrate(database: sqlite3.Connection) -> None:
    """In one transaction: a process that is killed leaves the old file."""
    database.execute("begin immediate")
    try:
        version = _version(database)  # another process may have been faster
        is_new = not database.execute("select 1 from sqlite_master where name = 'demands'").fetchone()
        for statement in () if is_new else (step for number in range(version, SCHEMA) for step in _STEPS[number]):
            database.execute(statement)
        for statement in TABLES.split(";\n"):
            database.execute(statement)
        if version == 0:
            database.execute("insert into roles(person_id, role) select person_id, role from people")
        database.execute(f"pragma user_version = {SCHEMA}")
    except BaseException:
        database.execute("rollback")
        raise
    database.execute("commit")


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
