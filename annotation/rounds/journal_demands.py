"""Demands, the terms of each, and the tasks and projects of the server that stand for them."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from darkroom.annotation.rounds.journal_entries import DEMAND_COLUMNS, Demand, RoundProject, StoredTask
from darkroom.annotation.rounds.journal_file import JournalFile
from darkroom.annotation.rounds.terms import Terms

_N_SUBMISSIONS = """
    (select count(distinct r.annotation_id) from revisions r
    where (r.task_id = tasks.task_id or r.task_id in (select task_id from retired where retired.key = tasks.key))
    and r.annotation_id not in (select annotation_id from gone)
    and json_extract(r.raw, '$.was_cancelled') is not 1
    and not (json_extract(r.raw, '$.result') = '[]' and json_extract(r.raw, '$.lead_time') is null))"""
"""Of a task: what is no skip, and no empty annotation that excludes an account."""


class DemandJournal(JournalFile):
    """Requested work, and where it was handed out."""

    def demand(
        self, demands: Iterable[Demand], *, campaign: str, terms: Mapping[Demand, Terms] = MappingProxyType({})
    ) -> None:
        """Stores demands with their ``terms``; existing ones stay unchanged."""
        rows = [(demand.key(campaign), *demand, terms[demand].digest if demand in terms else "") for demand in demands]
        marks = ", ".join("?" * (len(Demand._fields) + 2))
        statement = f"insert or ignore into demands(key, {DEMAND_COLUMNS}, terms) values ({marks})"
        with self.transaction():
            self._add_terms(set(terms.values()))
            self._db.executemany(statement, rows)

    def put_in_force(self, round: str, terms: Terms) -> Terms | None:
        """Stores the terms of tasks that are handed out from now on; returns the earlier ones if they differ."""
        query = "select raw from terms where digest = (select terms from in_force where round = ?)"
        row = self._db.execute(query, (round,)).fetchone()
        before = Terms.from_json(row[0]) if row else None
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
        """The keys of demands that a version before terms stored."""
        return [row[0] for row in self._db.execute("select key from demands where terms = '' and round = ?", (round,))]

    def set_terms(self, terms: Mapping[str, Terms]) -> None:
        """Freezes the terms of demands (by key) that have none."""
        with self.transaction():
            self._add_terms(set(terms.values()))
            rows = [(value.digest, key) for key, value in terms.items()]
            self._db.executemany("update demands set terms = ? where key = ? and terms = ''", rows)

    def _add_terms(self, terms: Iterable[Terms]) -> None:
        rows = [(value.digest, value.to_json()) for value in terms]
        self._db.executemany("insert or ignore into terms values (?, ?)", rows)

    def excluded(self, keys: Sequence[str]) -> dict[str, int]:
        """How many people each key that is a demand of this campaign excludes."""
        return dict(self._by_key("select key, overlap - n_wanted from demands", keys))

    def task_ids(self, keys: Sequence[str]) -> dict[str, int]:
        """The valid task of each key."""
        return dict(self._by_key("select key, task_id from tasks", keys))

    def unready(self, round: str) -> list[tuple[str, int, Demand]]:
        """Tasks of a round without their settings on the server yet: key, task and demand."""
        rows = self._db.execute(
            f"select key, task_id, {DEMAND_COLUMNS}"
            " from tasks t cross join demands d using (key) where d.round = ? and not t.is_ready order by d.seq",
            (round,),
        )
        return [(row[0], row[1], Demand(*row[2:])) for row in rows]

    def add_tasks(
        self, project_id: int, tasks: Iterable[tuple[str, int]], *, data: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Stores tasks of the server (key, task); the first of two with one key is valid.

        ``data`` are digests by key of what was handed out.
        """
        statement = "insert or ignore into tasks(key, project_id, task_id, is_ready, data) values (?, ?, ?, 0, ?)"
        self._write(statement, ((key, project_id, task_id, data.get(key, "")) for key, task_id in tasks))

    def tasks(self, project_id: int) -> list[StoredTask]:
        """The valid tasks of a project that the server is expected to have."""
        rows = self._db.execute(
            f"select tasks.task_id, tasks.key, data, overlap, n_wanted, {_N_SUBMISSIONS} "
            "from tasks join demands using (key) where project_id = ? and not is_lost order by tasks.task_id",
            (project_id,),
        )
        return [StoredTask(*row) for row in rows]

    def n_tasks(self, project_id: int) -> int:
        """The number of tasks that the server is expected to have in a project."""
        query = "select count(*) from tasks where project_id = ? and not is_lost"
        count: int = self._db.execute(query, (project_id,)).fetchone()[0]
        return count

    def set_lost(self, task_ids: Iterable[int]) -> None:
        """The server lost finished tasks; what was submitted is kept."""
        self._write("update tasks set is_lost = 1 where task_id = ?", ((task_id,) for task_id in task_ids))

    def retire_tasks(self, task_ids: Iterable[int]) -> None:
        """Their demands are handed out again; what was entered into them stays part of the demand."""
        with self.transaction():
            for task_id in task_ids:
                self._retire("task_id = ?", task_id)

    def _retire(self, condition: str, value: object) -> None:
        self._db.execute(f"insert into retired select task_id, key from tasks where {condition}", (value,))
        self._db.execute("delete from tasks where task_id in (select task_id from retired)")

    def set_ready(self, keys: Iterable[str]) -> None:
        """The tasks have their settings on the server."""
        self._write("update tasks set is_ready = 1 where key = ?", ((key,) for key in keys))

    def forget_project(self, round: str) -> None:
        """Forgets a deleted project and its tasks that lack submissions, which will be created again."""
        n_wanted = "(select n_wanted from demands where demands.key = tasks.key)"
        with self.transaction():
            condition = "project_id = (select project_id from projects where round = ?)"
            self._retire(f"{condition} and {_N_SUBMISSIONS} < {n_wanted}", round)
            self._db.execute("delete from projects where round = ?", (round,))

    def rounds(self) -> list[str]:
        """The rounds and queues that have a project."""
        return [row[0] for row in self._db.execute("select round from projects order by rowid")]

    def project(self, round: str) -> RoundProject | None:
        query = "select project_id, last_task, watermark from projects where round = ?"
        row = self._db.execute(query, (round,)).fetchone()
        return RoundProject(*row) if row else None

    def set_project(self, round: str, project_id: int, *, last_task: int = 0, watermark: str = "") -> None:
        self._write("insert or replace into projects values (?, ?, ?, ?)", [(round, project_id, last_task, watermark)])
