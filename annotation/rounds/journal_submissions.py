"""What came back: states of annotations, people and the roles they had, and submissions that the server blocked."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from types import MappingProxyType
from typing import Any

from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.journal_entries import DEMAND_COLUMNS, Work, joined_roles, read_works, revision_digest
from darkroom.annotation.rounds.journal_file import JournalFile

_ROLES = """
    update revisions set roles = coalesce((
        select group_concat(distinct r.role) from roles r
        where r.person_id = json_extract(revisions.raw, '$.completed_by')
        and (r.last_demand is null or r.last_demand >= (
            select d.seq from demands d join (
                select key, task_id from tasks union all select key, task_id from retired) using (key)
            where task_id = revisions.task_id))), '')
    where roles is null"""
"""The roles that each signer had at some time from the hand-out of the task on."""


class SubmissionJournal(JournalFile):
    """Revisions, their signers, and the log of blocked submissions."""

    def add_revisions(
        self,
        task_id: int,
        annotations: Sequence[Mapping[str, Any]],
        *,
        roles: Mapping[int, Sequence[str]] = MappingProxyType({}),
    ) -> int:
        """Stores new states of one task's annotations, and which were deleted; returns the number of changes.

        ``roles`` are the signers' by annotation, where they are known already (a recording's).
        """
        before = self._db.total_changes
        rows = [
            (
                raw["id"],
                revision_digest(raw),
                task_id,
                json.dumps(raw, sort_keys=True),
                joined_roles(roles.get(raw["id"])),
            )
            for raw in annotations
        ]
        self._db.executemany(
            "insert or ignore into revisions(annotation_id, digest, task_id, raw, roles) values (?, ?, ?, ?, ?)", rows
        )
        present = {raw["id"] for raw in annotations}
        stored = {row[0] for row in self._db.execute("select annotation_id from revisions where task_id=?", (task_id,))}
        self._db.executemany("insert or ignore into gone values (?)", [(number,) for number in stored - present])
        self._db.executemany("delete from gone where annotation_id = ?", [(number,) for number in present])
        return self._db.total_changes - before

    def works(self, rounds: Sequence[str], *, touched: bool = False) -> Iterator[tuple[str, list[Work]]]:
        """All work of each item in ``rounds``, item after item; of ``touched`` items only. Memory: one item."""
        marks, selected = ",".join("?" * len(rounds)), "and d.item_id in touched" if touched else ""
        reader = sqlite3.connect(self.path, timeout=60)  # a snapshot, independent of concurrent writes
        rows = reader.execute(
            f"select d.key, {DEMAND_COLUMNS}, terms, t.task_id, t.project_id, r.seq, r.annotation_id, r.digest, "
            "r.task_id, r.raw, r.roles, g.annotation_id from demands d left join tasks t using (key) "
            "left join revisions r on r.task_id = t.task_id "
            "or r.task_id in (select task_id from retired where retired.key = d.key) "
            "left join gone g on g.annotation_id = r.annotation_id "
            f"where d.round in ({marks}) {selected} order by d.item_id, d.seq, r.seq",
            list(rounds),
        )
        with closing(reader):
            for item_id, item_rows in groupby(rows, key=lambda row: row[2]):
                yield item_id, read_works(item_rows)

    def set_people(self, people: Iterable[Person]) -> None:
        """The server's accounts, pulled after its submissions; deleted ones are kept.

        Freezes with each new submission every role that its signer had from the hand-out of the task on: a task is open
        to many, and a role may change between hand-out, submission and pull.
        """
        with self.transaction():
            for person in people:
                self._db.execute("insert or replace into people values (?, ?, ?, ?)", person)
                self._set_role(person)
            self._db.execute(_ROLES)

    def _set_role(self, person: Person) -> None:
        query = "select seq, role from roles where person_id = ? and last_demand is null"
        current = self._db.execute(query, (person.person_id,)).fetchone()
        if current and current[1] == person.role:
            return
        if current:
            last = "update roles set last_demand = (select coalesce(max(seq), 0) from demands) where seq = ?"
            self._db.execute(last, (current[0],))
        self._db.execute("insert into roles(person_id, role) values (?, ?)", (person.person_id, person.role))

    def people(self) -> dict[int, Person]:
        """Every account ever seen, by number."""
        return {row[0]: Person(*row) for row in self._db.execute("select * from people order by person_id")}

    def add_blocked(self, first: int, entries: Sequence[Mapping[str, Any]]) -> None:
        """The server's log of blocked submissions, from entry ``first`` on."""
        rows = ((number, json.dumps(entry, sort_keys=True)) for number, entry in enumerate(entries, first))
        self._write("insert or ignore into hits values (?, ?)", rows)

    @property
    def n_blocked(self) -> int:
        count: int = self._db.execute("select count(*) from hits").fetchone()[0]
        return count

    @property
    def last_annotation(self) -> int:
        """The highest number of an annotation; 0 without any."""
        number: int = self._db.execute("select coalesce(max(annotation_id), 0) from revisions").fetchone()[0]
        return number

    def blocked_submissions(self) -> list[dict[str, Any]]:
        """The whole log of blocked submissions."""
        return [json.loads(row[0]) for row in self._db.execute("select raw from hits order by place")]
