"""The journal: requested work and all submissions, stored before anything is derived from them.

One SQLite file in the campaign's folder. A *request* (one round of one item; table ``demands``) is stored before its
task goes to the server, so that a sync interrupted in between finds the task by its ``key`` and imports nothing twice.
A key is random: one that is computed from a request would tell whoever reads it whether the task has a planted error.
A *version* (table ``revisions``) is one state of one annotation, as the server returned it; nothing is overwritten.
Record states are derived (``annotation/rounds/state_machine.py``), never stored; what they are judged by is: the
*terms* of a request, and the roles that the signer of a version had from the hand-out of its task on.
"""

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from darkroom.annotation.label_studio.protocol import NOTHING, Person
from darkroom.annotation.rounds import journal_file as file
from darkroom.annotation.rounds.campaign import Terms
from darkroom.annotation.rounds.journal_file import RecordTask, TaskRequest
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.row_files import by_key


class Journal(file.JournalFile):
    """The journal of one campaign. Use it as a context manager."""

    def request(self, requests: Iterable[TaskRequest], *, terms: Mapping[TaskRequest, Terms] = NOTHING) -> list[str]:
        """Store requests with their ``terms``; existing ones stay unchanged. Returns the keys of their tasks."""
        with self.transaction():
            self._add_terms(set(terms.values()))
            return [self._request(each, terms[each].digest if each in terms else "") for each in requests]

    def _request(self, request: TaskRequest, terms: str) -> str:
        same, values = "(round, item_id, attempt, serial, gold)", (*request[:4], request.planted_error)
        key = self._value(f"select key from demands where {same} = (?, ?, ?, ?, ?) order by seq desc", *values)
        if key is None:
            key, marks = self._new_key(request), ", ".join("?" * (len(request) + 2))
            insert = f"insert into demands(key, {file.REQUEST_COLUMNS}, terms) values ({marks})"
            self._db.execute(insert, (key, *request, terms))
        return str(key)

    def _new_key(self, request: TaskRequest) -> str:
        return secrets.token_hex(10)

    @property
    def seed(self) -> int:
        """The secret seed of a campaign whose file has none."""
        return int(self._value("select seed from secret"))

    def put_in_force(self, round: str, terms: Terms) -> Terms | None:
        """Store the terms of tasks that are handed out from now on; returns the earlier ones if they differ."""
        raw = self._value("select raw from terms where digest = (select terms from in_force where round = ?)", round)
        before = Terms.from_json(raw) if raw else None
        if before == terms:
            return None
        with self.transaction():
            self._add_terms([terms])
            self._db.execute("insert or replace into in_force values (?, ?)", (round, terms.digest))
        return before

    def terms(self) -> dict[str, Terms]:
        """All terms under which tasks were handed out, by digest."""
        return {row[0]: Terms.from_json(row[1]) for row in self._db.execute("select digest, raw from terms")}

    def without_terms(self, round: str) -> list[str]:
        """The keys of requests that a version before terms stored."""
        return self._column("select key from demands where terms = '' and round = ?", round)

    def set_terms(self, terms: Mapping[str, Terms]) -> None:
        """Freeze the terms of requests (by key) that have none."""
        with self.transaction():
            self._add_terms(set(terms.values()))
            rows = [(value.digest, key) for key, value in terms.items()]
            self._db.executemany("update demands set terms = ? where key = ? and terms = ''", rows)

    def _add_terms(self, terms: Iterable[Terms]) -> None:
        rows = [(value.digest, json.dumps(value._asdict())) for value in terms]
        self._db.executemany("insert or ignore into terms values (?, ?)", rows)

    def n_excluded(self, keys: Sequence[str]) -> dict[str, int]:
        """The number of people that each key excludes; keys that are no request of this campaign are left out."""
        return self._by_key("select key, overlap - n_wanted from demands", keys)

    def task_ids(self, keys: Sequence[str]) -> dict[str, int]:
        return self._by_key("select key, task_id from tasks", keys)

    def unready(self, round: str) -> list[tuple[str, int, TaskRequest]]:
        """Tasks of a round without their settings on the server yet: key, task and request."""
        rows = self._db.execute(file.QUERIES["unready"].format(columns=file.REQUEST_COLUMNS), (round,))
        return [(row[0], row[1], TaskRequest(*row[2:])) for row in rows]

    def add_tasks(
        self, project_id: int, tasks: Iterable[tuple[str, int]], *, data: Mapping[str, str] = NOTHING
    ) -> None:
        """Store tasks of the server; the first of two with one key is valid. ``data``: digests by key."""
        statement = "insert or ignore into tasks(key, project_id, task_id, is_ready, data) values (?, ?, ?, 0, ?)"
        self._write(statement, ((key, project_id, task_id, data.get(key, "")) for key, task_id in tasks))

    def tasks(self, project_id: int) -> list[file.StoredTask]:
        """The valid tasks of a project that the server is expected to have."""
        query = file.QUERIES["tasks"].format(n_submissions=file.QUERIES["n_submissions"])
        return [file.StoredTask(*row) for row in self._db.execute(query, (project_id,))]

    def n_tasks(self, project_id: int) -> int:
        """The number of tasks that the server is expected to have in a project."""
        return int(self._value("select count(*) from tasks where project_id = ? and not is_lost", project_id))

    def set_lost(self, task_ids: Iterable[int]) -> None:
        """Mark finished tasks that the server lost; their submissions are kept."""
        self._write("update tasks set is_lost = 1 where task_id = ?", ((task_id,) for task_id in task_ids))

    def retire_tasks(self, task_ids: Iterable[int]) -> None:
        """Let requests be handed out again; what was entered into their tasks stays part of them."""
        with self.transaction():
            for task_id in task_ids:
                self._retire("task_id = ?", task_id)

    def outdated(self) -> list[int]:
        """Unanswered tasks of changed items that build on another version than the latest of a submission."""
        return self._column(file.QUERIES["outdated"].format(n_submissions=file.QUERIES["n_submissions"]))

    def withdraw(self, task_ids: Iterable[int]) -> None:
        """Forget tasks that were not begun, and their requests."""
        with self.transaction():
            for number in task_ids:
                self._db.execute("delete from demands where key = (select key from tasks where task_id = ?)", (number,))
                self._db.execute("delete from tasks where task_id = ?", (number,))

    def _retire(self, condition: str, value: object) -> None:
        self._db.execute(f"insert into retired select task_id, key from tasks where {condition}", (value,))
        self._db.execute("delete from tasks where task_id in (select task_id from retired)")

    def set_ready(self, keys: Iterable[str]) -> None:
        self._write("update tasks set is_ready = 1 where key = ?", ((key,) for key in keys))

    def forget_project(self, round: str) -> None:
        """Forget a deleted project and its tasks that lack submissions, which will be created again."""
        n_wanted = "(select n_wanted from demands where demands.key = tasks.key)"
        with self.transaction():
            condition = "project_id = (select project_id from projects where round = ?)"
            self._retire(f"{condition} and {file.QUERIES['n_submissions']} < {n_wanted}", round)
            self._db.execute("delete from projects where round = ?", (round,))

    def rounds(self) -> list[str]:
        return self._column("select round from projects order by rowid")

    def project(self, round: str) -> file.RoundProject | None:
        query = "select project_id, last_task, watermark from projects where round = ?"
        row = self._db.execute(query, (round,)).fetchone()
        return file.RoundProject(*row) if row else None

    def set_project(self, round: str, project: file.RoundProject) -> None:
        self._write("insert or replace into projects values (?, ?, ?, ?)", [(round, *project)])

    def add_versions(
        self, task_id: int, annotations: Sequence[Mapping[str, Any]], *, roles: Mapping[int, Sequence[str]] = NOTHING
    ) -> None:
        """Store new states and deletions of one task's annotations; ``roles`` are a recording's."""
        frozen = {number: ",".join(names) for number, names in roles.items()}
        rows = [
            (raw["id"], file.version_digest(raw), task_id, json.dumps(raw, sort_keys=True), frozen.get(raw["id"]))
            for raw in annotations
        ]
        columns = "annotation_id, digest, task_id, raw, roles"
        self._db.executemany(f"insert or ignore into revisions({columns}) values (?, ?, ?, ?, ?)", rows)
        present = {raw["id"] for raw in annotations}
        deleted = {*self._column("select annotation_id from revisions where task_id = ?", task_id)} - present
        self._db.executemany("insert or ignore into gone values (?)", [(number,) for number in deleted])
        self._db.executemany("delete from gone where annotation_id = ?", [(number,) for number in present])

    def record_tasks(self, rounds: Sequence[str], *, changed: bool = False) -> Iterator[tuple[str, list[RecordTask]]]:
        """All tasks of each item in ``rounds``, item after item; of ``changed`` items only. Memory: one item."""
        marks, selected = ",".join("?" * len(rounds)), "and d.item_id in touched" if changed else ""
        # a snapshot, independent of concurrent writes; the garbage collector may close it in another thread
        reader = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
        query = file.QUERIES["record_tasks"].format(columns=file.REQUEST_COLUMNS, marks=marks, selected=selected)
        rows = reader.execute(query, list(rounds))
        with closing(reader):
            for item_id, item_rows in groupby(rows, key=lambda row: row[2]):
                yield item_id, file.read_tasks(item_rows)

    def set_people(self, people: Iterable[Person]) -> None:
        """Store accounts, and freeze each new submission's roles: those of its signer since the hand-out."""
        current = "select seq, role from roles where person_id = ? and last_demand is null"
        new = "insert into roles(person_id, role) values (?, ?)"
        end = "update roles set last_demand = (select coalesce(max(seq), 0) from demands) where seq = ?"
        with self.transaction():
            for person in people:
                self._db.execute("insert or replace into people values (?, ?, ?, ?, ?)", person)
                seq, role = self._db.execute(current, (person.person_id,)).fetchone() or (None, None)
                if role != person.role:
                    self._db.execute(end, (seq,))
                    self._db.execute(new, (person.person_id, person.role))
            self._db.execute(file.QUERIES["roles"])

    def people(self) -> dict[int, Person]:
        return {row[0]: Person(*row) for row in self._db.execute("select * from people order by person_id")}

    def add_blocked(self, first: int, entries: Sequence[Mapping[str, Any]]) -> None:
        """Store the server's log of blocked submissions, from entry ``first`` on."""
        rows = ((number, json.dumps(entry, sort_keys=True)) for number, entry in enumerate(entries, first))
        self._write("insert or ignore into hits values (?, ?)", rows)

    @property
    def n_blocked(self) -> int:
        return int(self._value("select count(*) from hits"))

    def blocked_submissions(self) -> list[dict[str, Any]]:
        return [json.loads(raw) for raw in self._column("select raw from hits order by place")]

    def set_practice(self, accounts: Iterable[Mapping[str, Any]]) -> None:
        """Store the tries of accounts; they stay when a server lost its database."""
        tries = ((account["email"], each) for account in accounts for each in account["practice"])
        rows = ((email, each["campaign"], each["number"], json.dumps(each)) for email, each in tries)
        self._write("insert or replace into practice values (?, ?, ?, ?)", rows)

    def practice(self) -> dict[str, list[dict[str, Any]]]:
        """Tries by address."""
        query = "select email, raw from practice order by email, campaign, number"
        return by_key((email, json.loads(raw)) for email, raw in self._db.execute(query))

    @property
    def last_annotation(self) -> int:
        return int(self._value("select coalesce(max(annotation_id), 0) from revisions"))

    @property
    def last_version(self) -> int:
        return int(self._value("select coalesce(max(seq), 0) from revisions"))

    def versions_after(self, number: int) -> Iterator[tuple[int, dict[str, Any], dict[str, Any] | None]]:
        """Versions after one: the annotation, its content, and its content before, None for a new one."""
        for annotation_id, raw, previous in self._db.execute(file.QUERIES["versions_after"], (number,)):
            yield annotation_id, json.loads(raw), previous and json.loads(previous)

    @property
    def synced(self) -> str:
        """Digest of the inputs for which the last complete sync handed out all work; empty before the first."""
        return self._value("select digest from settled") or ""

    def changed(self) -> set[str]:
        """The items whose tasks or annotations changed since then."""
        return {*self._column("select item_id from touched")}

    def set_synced(self, digest: str, stages: Mapping[str, tuple[str, str]], *, complete: bool) -> None:
        """Note that all work is handed out; ``stages`` (stage and round) are of all records, or of changed ones."""
        with self.transaction():
            if complete:
                self._db.execute("delete from progress")
            rows = ((item_id, *stage) for item_id, stage in stages.items())
            self._db.executemany("insert or replace into progress values (?, ?, ?)", rows)
            self._db.execute("delete from touched")
            self._db.execute("insert or replace into settled values (1, ?)", (digest,))

    def progress(self) -> list[tuple[str, str, int]]:
        """Stage, round and number of records, as of the last complete sync."""
        query = "select stage, round, count(*) from progress group by stage, round order by min(item_id)"
        return list(self._db.execute(query))

    @property
    def fingerprint(self) -> str:
        """Digest that changes with every entry."""
        tables = ("demands", "tasks", "retired", "revisions", "gone", "hits")
        counts = [self._value(f"select count(*) from {table}") for table in tables]
        return digest([*counts, [list(person) for person in self.people().values()]])
