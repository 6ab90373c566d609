"""The file of a journal: its tables, and the way from older schemas to today's."""

import sqlite3
from pathlib import Path

from annotation import AnnotationError

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
        raise AnnotationError(f"{path} cannot be opened ({error}); restore it from a backup") from error
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
