"""The journal: what was asked of people and what they submitted, durable before anything is made of it.

One SQLite file in the campaign's folder. A *demand* is a piece of work that somebody shall do (one round of one item);
it is written before its task goes to the server, so that a process killed in between finds the task again by its
``key`` and imports nothing twice. A *revision* is one state of one annotation, as the server gave it; nothing is ever
overwritten. What follows from both is derived (``annotation/rounds.py``), never stored.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from annotation.faults import AnnotationFault
from pipelines.digest import digest

SCHEMA = """
create table if not exists projects(
    round text primary key, project_id integer not null, last_task integer not null, watermark text not null);
create table if not exists demands(
    seq integer primary key autoincrement, key text unique not null, round text not null, item_id text not null,
    attempt integer not null, serial integer not null, base_annotation integer not null, base_revision text not null,
    gold text not null, overlap integer not null);
create index if not exists demands_by_item on demands(item_id, seq);
create table if not exists tasks(key text primary key, project_id integer not null, task_id integer not null,
    is_ready integer not null);
create index if not exists tasks_by_id on tasks(task_id);
create table if not exists revisions(
    seq integer primary key autoincrement, annotation_id integer not null, digest text not null,
    task_id integer not null, raw text not null, unique(annotation_id, digest));
create index if not exists revisions_by_task on revisions(task_id, seq);
create table if not exists gone(annotation_id integer primary key);
create table if not exists hits(place integer primary key, raw text not null);
create table if not exists settled(only_row integer primary key check (only_row = 1), digest text not null);
create table if not exists people(person_id integer primary key, email text not null, name text not null,
    role text not null);
"""
DEMAND = "round, item_id, attempt, serial, base_annotation, base_revision, gold, overlap"


class Demand(NamedTuple):
    """One piece of work: a round of an item. ``base`` is the revision that it builds on, frozen from then on."""

    round: str
    item_id: str
    attempt: int
    serial: int
    """Counts up when the round must be done again because what was submitted is void."""
    base_annotation: int = 0
    base_revision: str = ""
    gold: str = ""
    """The planted error of a gold item; empty for real work."""
    overlap: int = 1
    """Annotations that complete its task: one, and the seats of those who must not get it."""

    def key(self, campaign: str) -> str:
        """The name of its task on the server; says nothing to who reads it."""
        return digest([campaign, self.round, self.item_id, self.attempt, self.serial, self.gold])[:20]


class Revision(NamedTuple):
    """One state of one annotation; ``digest`` is that of what people can change of it."""

    seq: int
    annotation_id: int
    digest: str
    task_id: int
    raw: Mapping[str, Any]


class Person(NamedTuple):
    """An account on the server."""

    person_id: int
    email: str
    name: str
    role: str


@dataclass(slots=True)
class Work:
    """A demand with its task, if there is one, and all revisions of all its annotations, in the order of pulling."""

    demand: Demand
    task_id: int | None
    project_id: int | None
    revisions: list[Revision] = field(default_factory=list)

    @property
    def annotations(self) -> list[list[Revision]]:
        """The states of each annotation, in the order of pulling; oldest annotation first."""
        found: dict[int, list[Revision]] = {}
        for revision in self.revisions:
            found.setdefault(revision.annotation_id, []).append(revision)
        return [found[annotation_id] for annotation_id in sorted(found)]


class Journal:
    """The journal of one campaign. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "journal.sqlite"
        try:
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            self._db.executescript(SCHEMA)
        except sqlite3.DatabaseError as fault:
            raise AnnotationFault(f"{self.path} cannot be opened ({fault}); restore it from a backup") from fault

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        self._db.close()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One sync at a time; the kernel lets go of the lock when its holder dies. Raises ``AnnotationFault``."""
        with self.path.with_suffix(".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as fault:
                raise AnnotationFault("another sync of this campaign is running; wait until it has ended") from fault
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and on the disk when it is left."""
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def demand(self, demands: Iterable[Demand], *, campaign: str) -> None:
        """Enters demands; those that are there stay as they were."""
        rows = [(one.key(campaign), *one) for one in demands]
        with self.transaction():
            self._db.executemany(
                f"insert or ignore into demands(key, {DEMAND}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def demanded(self, keys: Sequence[str]) -> set[str]:
        """Which of ``keys`` are demands of this campaign."""
        found = set()
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            found |= {row[0] for row in self._db.execute(f"select key from demands where key in ({marks})", part)}
        return found

    def task_ids(self, keys: Sequence[str]) -> dict[str, int]:
        """The tasks that count for ``keys``."""
        found: dict[str, int] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            found |= dict(self._db.execute(f"select key, task_id from tasks where key in ({marks})", part).fetchall())
        return found

    def unready(self, round_: str) -> list[tuple[str, int, Demand]]:
        """Tasks of a round whose settings on the server are still to be made: key, task and demand."""
        rows = self._db.execute(
            f"select key, task_id, {DEMAND}"
            " from tasks t join demands d using (key) where d.round = ? and not t.is_ready order by d.seq",
            (round_,),
        )
        return [(row[0], row[1], Demand(*row[2:])) for row in rows]

    def add_tasks(self, project_id: int, tasks: Iterable[tuple[str, int]]) -> None:
        """Enters tasks that are on the server: (key, task); of two with one key the first counts."""
        with self.transaction():
            self._db.executemany(
                "insert or ignore into tasks(key, project_id, task_id, is_ready) values (?, ?, ?, 0)",
                [(key, project_id, task_id) for key, task_id in tasks],
            )

    def set_ready(self, keys: Iterable[str]) -> None:
        """The tasks' settings on the server are made."""
        with self.transaction():
            self._db.executemany("update tasks set is_ready = 1 where key = ?", [(key,) for key in keys])

    def forget_project(self, round_: str) -> None:
        """The project is gone: tasks that nobody had submitted to are forgotten, and will be made anew."""
        with self.transaction():
            self._db.execute(
                "delete from tasks where project_id = (select project_id from projects where round = ?) "
                "and task_id not in (select task_id from revisions)",
                (round_,),
            )
            self._db.execute("delete from projects where round = ?", (round_,))

    def project(self, round_: str) -> tuple[int, int, str] | None:
        """Its number on the server, the last task seen, and up to which moment changes were pulled."""
        row = self._db.execute("select project_id, last_task, watermark from projects where round = ?", (round_,))
        found: tuple[int, int, str] | None = row.fetchone()
        return found

    def set_project(self, round_: str, project_id: int, *, last_task: int = 0, watermark: str = "") -> None:
        """Enters or moves on."""
        with self.transaction():
            self._db.execute(
                "insert or replace into projects values (?, ?, ?, ?)", (round_, project_id, last_task, watermark)
            )

    def add_revisions(self, task_id: int, annotations: Sequence[Mapping[str, Any]]) -> int:
        """Enters what is new of one task's annotations, and which are gone; returns how many are new."""
        before = self._db.total_changes
        rows = [(one["id"], _digest(one), task_id, json.dumps(one, sort_keys=True)) for one in annotations]
        self._db.executemany(
            "insert or ignore into revisions(annotation_id, digest, task_id, raw) values (?, ?, ?, ?)", rows
        )
        present = {one["id"] for one in annotations}
        known = {row[0] for row in self._db.execute("select annotation_id from revisions where task_id=?", (task_id,))}
        self._db.executemany("insert or ignore into gone values (?)", [(one,) for one in known - present])
        self._db.executemany("delete from gone where annotation_id = ?", [(one,) for one in present])
        return self._db.total_changes - before

    def works(self, rounds: Sequence[str]) -> Iterator[tuple[str, list[Work]]]:
        """Item after item, all that was demanded of it in ``rounds`` and what came in. Memory: one item."""
        marks = ",".join("?" * len(rounds))
        reader = sqlite3.connect(self.path, timeout=60)  # a snapshot: what is entered meanwhile is not part of it
        rows = reader.execute(
            "select d.item_id, d.key, d.round, d.attempt, d.serial, d.base_annotation, d.base_revision, d.gold, "
            "d.overlap, t.task_id, t.project_id, r.seq, r.annotation_id, r.digest, r.raw, g.annotation_id "
            "from demands d left join tasks t using (key) left join revisions r on r.task_id = t.task_id "
            f"left join gone g on g.annotation_id = r.annotation_id where d.round in ({marks}) "
            "order by d.item_id, d.seq, r.seq",
            list(rounds),
        )
        with closing(reader):
            for item_id, of_item in groupby(rows, key=lambda row: row[0]):
                yield item_id, _works(item_id, of_item)

    def set_people(self, people: Iterable[Person]) -> None:
        """The accounts, as the server has them; who is no longer there stays known."""
        with self.transaction():
            self._db.executemany("insert or replace into people values (?, ?, ?, ?)", list(people))

    def people(self) -> dict[int, Person]:
        """Everybody who was ever seen, by number."""
        return {row[0]: Person(*row) for row in self._db.execute("select * from people order by person_id")}

    def add_hits(self, first: int, hits: Sequence[Mapping[str, Any]]) -> None:
        """What the gate refused, from place ``first`` on."""
        with self.transaction():
            rows = [(first + place, json.dumps(hit, sort_keys=True)) for place, hit in enumerate(hits)]
            self._db.executemany("insert or ignore into hits values (?, ?)", rows)

    def hits(self) -> list[dict[str, Any]]:
        """Everything that the gate refused."""
        return [json.loads(row[0]) for row in self._db.execute("select raw from hits order by place")]

    @property
    def settled(self) -> str:
        """What the last complete sync had handed all work out for; empty before the first one."""
        row = self._db.execute("select digest from settled").fetchone()
        return row[0] if row else ""

    def set_settled(self, digest: str) -> None:
        """All work is handed out that follows from this."""
        with self.transaction():
            self._db.execute("insert or replace into settled values (1, ?)", (digest,))

    @property
    def fingerprint(self) -> str:
        """Changes when something was entered."""
        counts = [
            self._db.execute(f"select count(*) from {table}").fetchone()[0]
            for table in ("demands", "tasks", "revisions", "gone", "hits")
        ]
        return digest([*counts, [list(person) for person in self.people().values()]])


def _works(item_id: str, rows: Iterable[Sequence[Any]]) -> list[Work]:
    works: dict[str, Work] = {}
    for _, key, round_, attempt, serial, annotation, revision, gold, overlap, task_id, project_id, *found in rows:
        if key not in works:
            demand = Demand(round_, item_id, attempt, serial, annotation, revision, gold, overlap)
            works[key] = Work(demand, task_id, project_id)
        seq, annotation_id, digest_, raw, is_gone = found
        if seq is not None and is_gone is None:
            works[key].revisions.append(Revision(seq, annotation_id, digest_, task_id, json.loads(raw)))
    return list(works.values())


def _digest(annotation: Mapping[str, Any]) -> str:
    """Of what a person can change; "2 minutes ago" is not part of it. Who edited counts where it is somebody else:
    the server enters that a moment after the annotation."""
    kept = ("result", "was_cancelled", "completed_by", "lead_time", "ground_truth")
    editor = annotation.get("updated_by")
    other = None if editor == annotation.get("completed_by") else editor
    return digest([{name: annotation.get(name) for name in kept}, other])
