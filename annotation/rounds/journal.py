"""The journal: requested work and all submissions, stored before anything is derived from them.

One SQLite file in the campaign's folder. A *demand* is requested work (one round of one item); it is stored before its
task goes to the server, so that a sync interrupted in between finds the task by its ``key`` and imports nothing twice.
A *revision* is one state of one annotation, as the server returned it; nothing is overwritten. Record states are
derived (``annotation/rounds/state_machine.py``), never stored.
"""

import fcntl
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Self

from annotation import AnnotationError
from annotation.label_studio.protocol import Person
from pipelines.records.digest import digest

_SCHEMA = Path(__file__).with_name("journal.sql").read_text(encoding="utf-8")
DEMAND_COLUMNS = "round, item_id, attempt, serial, base_annotation, base_revision, gold, overlap"
_MOST_KEYS = 500
"""In one query."""


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
    """Annotations that complete its task: one, and one per excluded annotator."""

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


class RoundProject(NamedTuple):
    """The project of a round: its number on the server, the last task found, and when changes were last pulled."""

    project_id: int
    last_task: int
    watermark: str


@dataclass(slots=True)
class Work:
    """A demand with its task, if there is one, and all revisions of its annotations, in the order of pulling."""

    demand: Demand
    task_id: int | None
    project_id: int | None
    revisions: list[Revision] = field(default_factory=list)

    @property
    def annotations(self) -> list[list[Revision]]:
        """The states of each annotation, in the order of pulling; oldest annotation first."""
        by_annotation: dict[int, list[Revision]] = {}
        for revision in self.revisions:
            by_annotation.setdefault(revision.annotation_id, []).append(revision)
        return [by_annotation[annotation_id] for annotation_id in sorted(by_annotation)]


class Journal:
    """The journal of one campaign. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "journal.sqlite"
        try:
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise AnnotationError(f"{self.path} cannot be opened ({error}); restore it from a backup") from error

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

    def demand(self, demands: Iterable[Demand], *, campaign: str) -> None:
        """Stores demands; existing ones stay unchanged."""
        statement = f"insert or ignore into demands(key, {DEMAND_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._write(statement, ((demand.key(campaign), *demand) for demand in demands))

    def demanded(self, keys: Sequence[str]) -> set[str]:
        """The keys that are demands of this campaign."""
        return {row[0] for row in self._by_key("select key from demands", keys)}

    def task_ids(self, keys: Sequence[str]) -> dict[str, int]:
        """The valid task of each key."""
        return dict(self._by_key("select key, task_id from tasks", keys))

    def _by_key(self, query: str, keys: Sequence[str]) -> Iterator[Any]:
        for start in range(0, len(keys), _MOST_KEYS):
            batch = keys[start : start + _MOST_KEYS]
            yield from self._db.execute(f"{query} where key in ({','.join('?' * len(batch))})", batch)

    def unready(self, round: str) -> list[tuple[str, int, Demand]]:
        """Tasks of a round without their settings on the server yet: key, task and demand."""
        rows = self._db.execute(
            f"select key, task_id, {DEMAND_COLUMNS}"
            " from tasks t join demands d using (key) where d.round = ? and not t.is_ready order by d.seq",
            (round,),
        )
        return [(row[0], row[1], Demand(*row[2:])) for row in rows]

    def add_tasks(self, project_id: int, tasks: Iterable[tuple[str, int]]) -> None:
        """Stores tasks of the server (key, task); the first of two with one key is valid."""
        statement = "insert or ignore into tasks(key, project_id, task_id, is_ready) values (?, ?, ?, 0)"
        self._write(statement, ((key, project_id, task_id) for key, task_id in tasks))

    def set_ready(self, keys: Iterable[str]) -> None:
        """The tasks have their settings on the server."""
        self._write("update tasks set is_ready = 1 where key = ?", ((key,) for key in keys))

    def forget_project(self, round: str) -> None:
        """Forgets a deleted project and its tasks without submissions, which will be created again."""
        with self.transaction():
            self._db.execute(
                "delete from tasks where project_id = (select project_id from projects where round = ?) "
                "and task_id not in (select task_id from revisions)",
                (round,),
            )
            self._db.execute("delete from projects where round = ?", (round,))

    def project(self, round: str) -> RoundProject | None:
        query = "select project_id, last_task, watermark from projects where round = ?"
        row = self._db.execute(query, (round,)).fetchone()
        return RoundProject(*row) if row else None

    def set_project(self, round: str, project_id: int, *, last_task: int = 0, watermark: str = "") -> None:
        self._write("insert or replace into projects values (?, ?, ?, ?)", [(round, project_id, last_task, watermark)])

    def add_revisions(self, task_id: int, annotations: Sequence[Mapping[str, Any]]) -> int:
        """Stores new states of one task's annotations, and which were deleted; returns the number of changes."""
        before = self._db.total_changes
        rows = [(raw["id"], _digest(raw), task_id, json.dumps(raw, sort_keys=True)) for raw in annotations]
        self._db.executemany(
            "insert or ignore into revisions(annotation_id, digest, task_id, raw) values (?, ?, ?, ?)", rows
        )
        present = {raw["id"] for raw in annotations}
        stored = {row[0] for row in self._db.execute("select annotation_id from revisions where task_id=?", (task_id,))}
        self._db.executemany("insert or ignore into gone values (?)", [(number,) for number in stored - present])
        self._db.executemany("delete from gone where annotation_id = ?", [(number,) for number in present])
        return self._db.total_changes - before

    def works(self, rounds: Sequence[str]) -> Iterator[tuple[str, list[Work]]]:
        """All work of each item in ``rounds``, item after item. Memory: one item."""
        marks = ",".join("?" * len(rounds))
        reader = sqlite3.connect(self.path, timeout=60)  # a snapshot, independent of concurrent writes
        rows = reader.execute(
            f"select key, {DEMAND_COLUMNS}, t.task_id, t.project_id, r.seq, r.annotation_id, r.digest, r.raw, "
            "g.annotation_id from demands d left join tasks t using (key) "
            "left join revisions r on r.task_id = t.task_id left join gone g on g.annotation_id = r.annotation_id "
            f"where d.round in ({marks}) order by d.item_id, d.seq, r.seq",
            list(rounds),
        )
        with closing(reader):
            for item_id, item_rows in groupby(rows, key=lambda row: row[2]):
                yield item_id, _works(item_rows)

    def set_people(self, people: Iterable[Person]) -> None:
        """The server's accounts; deleted ones are kept."""
        self._write("insert or replace into people values (?, ?, ?, ?)", people)

    def people(self) -> dict[int, Person]:
        """Every account ever seen, by number."""
        return {row[0]: Person(*row) for row in self._db.execute("select * from people order by person_id")}

    def add_blocked(self, first: int, entries: Sequence[Mapping[str, Any]]) -> None:
        """The server's log of blocked submissions, from entry ``first`` on."""
        rows = ((number, json.dumps(entry, sort_keys=True)) for number, entry in enumerate(entries, first))
        self._write("insert or ignore into hits values (?, ?)", rows)

    def blocked_submissions(self) -> list[dict[str, Any]]:
        """The whole log of blocked submissions."""
        return [json.loads(row[0]) for row in self._db.execute("select raw from hits order by place")]

    @property
    def settled(self) -> str:
        """Digest of the situation for which the last complete sync handed out all work; empty before the first."""
        row = self._db.execute("select digest from settled").fetchone()
        return row[0] if row else ""

    def set_settled(self, digest: str) -> None:
        self._write("insert or replace into settled values (1, ?)", [(digest,)])

    @property
    def fingerprint(self) -> str:
        """Changes with every entry."""
        counts = [
            self._db.execute(f"select count(*) from {table}").fetchone()[0]
            for table in ("demands", "tasks", "revisions", "gone", "hits")
        ]
        return digest([*counts, [list(person) for person in self.people().values()]])


def _works(rows: Iterable[Sequence[Any]]) -> list[Work]:
    works: dict[str, Work] = {}
    n_columns = len(Demand._fields)
    for key, *columns in rows:
        task_id, project_id, seq, annotation_id, revision_digest, raw, deleted = columns[n_columns:]
        work = works.setdefault(key, Work(Demand(*columns[:n_columns]), task_id, project_id))
        if seq is not None and deleted is None:
            work.revisions.append(Revision(seq, annotation_id, revision_digest, task_id, json.loads(raw)))
    return list(works.values())


def _digest(annotation: Mapping[str, Any]) -> str:
    """Covers what a person can change ("2 minutes ago" is not part of it), and the editor, if it is not the author:
    the server sets that a moment after the annotation."""
    fields = ("result", "was_cancelled", "completed_by", "lead_time", "ground_truth")
    editor = annotation.get("updated_by")
    foreign_editor = None if editor == annotation.get("completed_by") else editor
    return digest([{name: annotation.get(name) for name in fields}, foreign_editor])
