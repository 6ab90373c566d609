"""One sync: pulls submissions, pushes the next tasks; an interrupted sync resumes with the next one.

1. for every round, tasks of an interrupted import are recovered by their keys, and changes since the last sync pulled;
2. accounts and the log of blocked submissions are read;
3. the states of records with new work are derived; the next work is demanded (durably, with its terms), then imported.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from darkroom.annotation.label_studio.protocol import TaskServer
from darkroom.annotation.rounds.campaign import Campaign, Terms, annotation_digest, terms_of
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.next_tasks import pending_tasks
from darkroom.annotation.rounds.record_state import ROUNDS
from darkroom.annotation.rounds.state_machine import (
    Record,
    build_state_machine,
    record_states,
)
from darkroom.annotation.rounds.task_exchange import BATCH, PendingTask, SyncCounts, TaskExchange
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.records.digest import digest

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sync:
    """One campaign against one server."""

    journal: Journal
    server: TaskServer
    campaign: Campaign
    pre_annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Predictions of a policy for the first round, by the image's sha256."""
    say: Say = print
    recorded_terms: Mapping[str, Terms] = field(default_factory=dict)
    """Of a recording's tasks, by key."""

    def run(self, pool: Sequence[PoolImage], *, reset_forms: bool = False, recreate: bool = False) -> SyncCounts:
        """Raises ``AnnotationError``; what was pulled before is kept."""
        counts = SyncCounts()
        with self.journal.lock():
            exchange = TaskExchange(self.journal, self.server, self.campaign.name, self.campaign.language)
            for round in ROUNDS:
                counts.n_revisions += exchange.pull(round, reset_form=reset_forms, recreate=recreate)
                self._report_lost_tasks(round)
            if reset_forms or recreate:
                exchange.restore_queues(reset_form=reset_forms, recreate=recreate)
            exchange.open_checks(self.campaign.annotators_check)
            exchange.pull_accounts()
            self._put_terms_in_force(exchange)
            self._hand_out(pool, exchange, counts)
        return counts

    def _hand_out(self, pool: Sequence[PoolImage], exchange: TaskExchange, counts: SyncCounts) -> None:
        """Derives the states of touched records only, unless something changed that bears on all."""
        situation = self._situation(pool)
        complete = self.journal.settled != situation
        touched = set() if complete else self.journal.touched()
        if not complete and not touched:
            return
        stages: dict[str, tuple[str, str]] = {}
        records = self._records(pool if complete else [item for item in pool if item.image.sha256 in touched], complete)
        pending = self.pending(_noted(records, stages))
        while batch := list(islice(pending, BATCH)):
            counts.imported.update(exchange.push(batch))
            n_tasks = counts.imported.total()
            self.say(f"handed out {n_tasks:,} task{'' if n_tasks == 1 else 's'}")
        self.journal.set_settled(situation, stages, complete=complete)

    def _put_terms_in_force(self, exchange: TaskExchange) -> None:
        """From here on tasks go out under today's rules; those that are out keep theirs."""
        changed: dict[str, list[str]] = {}
        for round in ROUNDS:
            today = terms_of(self.campaign, round)
            exchange.freeze_old_terms(round, today)
            before = self.journal.put_in_force(round, today)
            if before is not None:
                changed.setdefault(", ".join(today.changes(before)), []).append(round)
        for change, rounds in changed.items():
            self.say(f"{change}: applies to tasks of {', '.join(rounds)} handed out from now on")

    def _report_lost_tasks(self, round: str) -> None:
        project = self.journal.project(round)
        n_lost = self.journal.n_tasks(project.project_id) - self.server.n_tasks(project.project_id) if project else 0
        if n_lost > 0:
            lost = "1 task is" if n_lost == 1 else f"{n_lost:,} tasks are"
            self.say(
                f"{round}: {lost} missing on the server; `darkroom annotate doctor` says which, and `darkroom annotate "
                "doctor --repair` hands out again what is unfinished"
            )

    def _situation(self, pool: Sequence[PoolImage]) -> str:
        """Digest of everything that bears on the next work of all records."""
        images = sorted(item.image.sha256 for item in pool)
        people = [list(person) for person in self.journal.people().values()]
        return digest([people, images, self.campaign.model_dump(mode="json"), annotation_digest()])

    def _records(self, pool: Sequence[PoolImage], complete: bool) -> Iterator[Record]:
        machine = build_state_machine(self.journal, self.campaign)
        return record_states(pool, self.journal, machine, touched=not complete)

    def pending(self, records: Iterable[Record]) -> Iterator[PendingTask]:
        """The tasks to hand out now."""
        return pending_tasks(
            records,
            self.journal,
            self.campaign,
            pre_annotations=self.pre_annotations,
            recorded_terms=self.recorded_terms,
        )


def _noted(records: Iterable[Record], stages: dict[str, tuple[str, str]]) -> Iterator[Record]:
    """The same records, with stage and round of each entered in ``stages``."""
    for record in records:
        stages[record.state.item_id] = (record.state.stage, record.state.round)
        yield record


class Received(NamedTuple):
    """People's work: annotations that are new, and older ones whose content has changed."""

    n_submitted: int
    n_skipped: int
    n_edited: int

    def __str__(self) -> str:
        parts = [f"{self.n_submitted:,} submission{'' if self.n_submitted == 1 else 's'}"]
        parts += [f"{self.n_skipped:,} skipped"] if self.n_skipped else []
        parts += [f"{self.n_edited:,} edited"] if self.n_edited else []
        return ", ".join(parts)


def last_revision(journal: Journal) -> int:
    """The number of the newest revision; 0 for an empty journal."""
    with closing(sqlite3.connect(journal.path, timeout=60)) as reader:
        return int(reader.execute("select coalesce(max(seq), 0) from revisions").fetchone()[0])


def received_since(journal: Journal, after: int) -> Received:
    """The work in revisions after number ``after``; an annotation that is new and edited is one submission."""
    query = (
        "select r.annotation_id, r.raw, (select p.raw from revisions p where p.annotation_id = r.annotation_id "
        "and p.seq < r.seq order by p.seq desc limit 1) from revisions r where r.seq > ? order by r.seq"
    )
    n_submitted = n_skipped = 0
    new: set[int] = set()
    edited: set[int] = set()
    with closing(sqlite3.connect(journal.path, timeout=60)) as reader:
        for annotation_id, raw, previous in reader.execute(query, (after,)):
            annotation = json.loads(raw)
            if previous is not None:
                if annotation_id not in new and _content(annotation) != _content(json.loads(previous)):
                    edited.add(annotation_id)
                continue
            new.add(annotation_id)
            if annotation.get("was_cancelled"):
                n_skipped += 1
            elif annotation.get("result"):
                n_submitted += 1
    return Received(n_submitted, n_skipped, len(edited))


def _content(annotation: dict[str, object]) -> object:
    return annotation.get("result"), bool(annotation.get("was_cancelled"))
