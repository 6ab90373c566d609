"""A campaign's journal as a file: its entries, its tables, older schemas, its lock and transactions."""

import fcntl
import json
import secrets
import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

from darkroom.annotation import AnnotationError
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.storage_errors import sqlite_mend

REQUEST_COLUMNS = "round, item_id, attempt, serial, base_annotation, base_revision, gold, overlap, n_wanted, bases"
SCHEMA = 6
"""Of the file (``pragma user_version``); 0 is a file of a version before terms, or a new one."""
TABLES = Path(__file__).with_name("journal.sql").read_text(encoding="utf-8")
_STEPS = tomllib.loads(Path(__file__).with_name("journal_steps.toml").read_text(encoding="utf-8"))
QUERIES: dict[str, str] = _STEPS["queries"]
"""The longer statements, by name."""


class TaskRequest(NamedTuple):
    """Requested work: a round of an item. ``base`` is the version that it builds on, frozen from then on."""

    round: str
    item_id: str
    attempt: int
    serial: int
    """Counts repetitions of a round after invalid submissions."""
    base_annotation: int = 0
    base_version: str = ""
    planted_error: str = ""
    """Its kind; empty for real work."""
    overlap: int = 1
    """Annotations that complete its task: ``n_wanted``, and one per excluded annotator."""
    n_wanted: int = 1
    """Number of people to answer it, each on their own."""
    bases: str = ""
    """After a round that several people judged: JSON of [annotation, version] of all but the first."""

    @property
    def frozen(self) -> dict[int, str]:
        """The versions that it builds on, by annotation."""
        return {self.base_annotation: self.base_version, **dict(json.loads(self.bases or "[]"))}

    def key(self, campaign: str) -> str:
        """The name of its task in recordings. On a server a task has a random one: people could compute this."""
        return digest([campaign, self.round, self.item_id, self.attempt, self.serial, self.planted_error])[:20]


class AnnotationVersion(NamedTuple):
    """One state of one annotation; ``digest`` covers what people can change."""

    seq: int
    annotation_id: int
    digest: str
    task_id: int
    raw: Mapping[str, Any]
    roles: tuple[str, ...] | None = None
    """The signer's, from the hand-out of the task to the submission; None before accounts were pulled."""


class RoundProject(NamedTuple):
    """The project of a round: its number on the server, the last task stored, and when changes were last pulled."""

    project_id: int
    last_task: int = 0
    watermark: str = ""


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
class RecordTask:
    """A request with its task, if there is one, and all versions of its annotations, in the order of pulling."""

    request: TaskRequest
    task_id: int | None
    project_id: int | None
    versions: list[AnnotationVersion] = field(default_factory=list)
    terms: str = ""
    """Digest of its terms; empty for a queue's, and for a task of an older version until the next sync."""

    @property
    def annotations(self) -> list[list[AnnotationVersion]]:
        """The versions of each annotation, in the order of pulling; oldest annotation first."""
        number = attrgetter("annotation_id")
        return [list(versions) for _, versions in groupby(sorted(self.versions, key=number), number)]


def read_tasks(rows: Iterable[Sequence[Any]]) -> list[RecordTask]:
    tasks: dict[str, RecordTask] = {}
    n_columns = len(TaskRequest._fields)
    for key, *columns in rows:
        terms, task_id, project_id, *version_columns = columns[n_columns:]
        task = tasks.setdefault(key, RecordTask(TaskRequest(*columns[:n_columns]), task_id, project_id, terms=terms))
        seq, annotation_id, version_id, entered_in, raw, roles, deleted = version_columns
        if seq is not None and deleted is None:
            frozen = None if roles is None else tuple(filter(None, roles.split(",")))
            task.versions.append(AnnotationVersion(seq, annotation_id, version_id, entered_in, json.loads(raw), frozen))
    return list(tasks.values())


def version_digest(annotation: Mapping[str, Any]) -> str:
    """Digest of what a person can change and of a foreign editor; the server sets an editor with delay."""
    fields = ("result", "was_cancelled", "completed_by", "lead_time", "ground_truth")
    editor = annotation.get("updated_by")
    foreign_editor = None if editor == annotation.get("completed_by") else editor
    return digest([{name: annotation.get(name) for name in fields}, foreign_editor])


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

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing, and durable on exit."""
        return _transaction(self._db)

    def _write(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self.transaction():
            self._db.executemany(statement, list(rows))

    def _column(self, query: str, *parameters: object) -> list[Any]:
        return [row[0] for row in self._db.execute(query, parameters)]

    def _value(self, query: str, *parameters: object) -> Any:
        return next(iter(self._column(query, *parameters)), None)

    def _by_key(self, query: str, keys: Sequence[str]) -> dict[str, Any]:
        """The rows of a query for a key and a value, of these keys."""
        found = self._db.execute(f"{query} where key in (select value from json_each(?))", (json.dumps(list(keys)),))
        return dict(found.fetchall())


def open_journal(path: Path) -> sqlite3.Connection:
    """Open the database and bring it to today's schema. Raises ``AnnotationError`` for a damaged or newer file."""
    try:
        with suppress(OSError):  # an existing file, or one that SQLite cannot create either
            path.touch(mode=0o600, exist_ok=False)
        database = sqlite3.connect(path, timeout=60, isolation_level=None)
        database.execute("pragma journal_mode=wal")
        database.execute("pragma synchronous=full")
        (version,) = database.execute("pragma user_version").fetchone()
        if version < SCHEMA:
            _migrate(database)
    except sqlite3.DatabaseError as error:
        mend = sqlite_mend(str(error)) or "restore it from a backup"
        raise AnnotationError(f"{path} cannot be opened ({error}). To do: {mend}") from error
    if version > SCHEMA:
        database.close()
        newer = f"a newer version of Darkroom (schema {version}, this one knows {SCHEMA})"
        raise AnnotationError(f"{path} was written by {newer}; upgrade Darkroom")
    return database


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("begin immediate")
    with database:  # commits, or rolls back
        yield


def _migrate(database: sqlite3.Connection) -> None:
    """Bring the file to today's schema in one transaction: a process that is killed leaves the old file."""
    with _transaction(database):
        (version,) = database.execute("pragma user_version").fetchone()  # another process may have been faster
        is_new = not database.execute("select 1 from sqlite_master where name = 'demands'").fetchone()
        for statement in () if is_new else (step for number in range(version, SCHEMA) for step in _STEPS[str(number)]):
            database.execute(statement)
        for statement in TABLES.split(";\n"):
            database.execute(statement)
        if version == 0:
            database.execute("insert into roles(person_id, role) select person_id, role from people")
        database.execute("insert or ignore into secret values (1, ?)", (secrets.randbelow(2**53),))
        database.execute(f"pragma user_version = {SCHEMA}")
