"""The file of a journal: its tables, the way from older schemas to today's, its lock and its transactions."""

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from darkroom.annotation import AnnotationError
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
