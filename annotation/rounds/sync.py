"""One sync: pulls submissions, pushes the next tasks; an interrupted sync resumes with the next one.

1. for every round, tasks of an interrupted import are recovered by their keys, and changes since the last sync pulled;
2. accounts and the log of blocked submissions are read;
3. the states of changed records are derived; the next tasks are requested (durably, with their terms), then imported.
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
from darkroom.annotation.rounds.record_state import ROUNDS, Record
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.submissions import SubmissionReader
from darkroom.annotation.rounds.task_exchange import BATCH, SyncCounts, TaskExchange
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
    """Terms of a recording's tasks, by key."""

    def run(self, pool: Sequence[PoolImage], *, reset_forms: bool = False, recreate: bool = False) -> SyncCounts:
        """Raises ``AnnotationError``; what was pulled before is kept."""
        counts = SyncCounts()
        with self.journal.lock():
            exchange = TaskExchange(self.journal, self.server, self.campaign)
            for round in ROUNDS:
                counts.n_versions += exchange.pull(round, reset_form=reset_forms, recreate=recreate)
                self._report_lost_tasks(round)
            if reset_forms or recreate:
                exchange.restore_queues(reset_form=reset_forms, recreate=recreate)
            exchange.open_checks(self.campaign.annotators_check)
            exchange.pull_accounts()
            self._put_terms_in_force(exchange)
            self._hand_out(pool, exchange, counts)
        return counts

    def _hand_out(self, pool: Sequence[PoolImage], exchange: TaskExchange, counts: SyncCounts) -> None:
        """Derive the states of changed records only, unless an input of all records changed."""
        inputs = self._inputs_digest(pool)
        complete = self.journal.synced != inputs
        changed = set() if complete else self.journal.changed()
        if not complete and not changed:
            return
        stages: dict[str, tuple[str, str]] = {}
        selected = pool if complete else [item for item in pool if item.image.sha256 in changed]
        records = _noted(record_states(selected, self.journal, self.campaign, changed=not complete), stages)
        pending = pending_tasks(
            records,
            self.journal,
            self.campaign,
            pre_annotations=self.pre_annotations,
            recorded_terms=self.recorded_terms,
        )
        while batch := list(islice(pending, BATCH)):
            counts.imported.update(exchange.push(batch))
            n_tasks = counts.imported.total()
            self.say(f"handed out {n_tasks:,} task{'' if n_tasks == 1 else 's'}")
        self.journal.set_synced(inputs, stages, complete=complete)

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

    def _inputs_digest(self, pool: Sequence[PoolImage]) -> str:
        """Digest of everything that bears on the next tasks of all records."""
        images = sorted(item.image.sha256 for item in pool)
        people = [list(person) for person in self.journal.people().values()]
        return digest([people, images, self.campaign.model_dump(mode="json"), annotation_digest()])


def record_states(
    pool: Iterable[PoolImage], journal: Journal, campaign: Campaign, *, changed: bool = False
) -> Iterator[Record]:
    """Every image of the pool with its tasks and state, ordered by digest. Memory: the pool and one record.

    The campaign's rules hold for tasks without terms in the journal. ``changed``: the pool is of changed items only.
    """
    reader = SubmissionReader(journal.terms(), Terms(campaign.max_share, campaign.max_rework))
    machine = StateMachine(journal.people())
    tasks_by_item = journal.record_tasks(ROUNDS, changed=changed)
    item_id, tasks = next(tasks_by_item, ("", []))
    for item in sorted(pool, key=lambda item: item.image.sha256):
        while item_id and item_id < item.image.sha256:  # an image that is no longer in the pool
            item_id, tasks = next(tasks_by_item, ("", []))
        item_tasks = tasks if item_id == item.image.sha256 else []
        submitted = reader.read(item_tasks, (item.image.width, item.image.height))
        yield Record(item, item_tasks, machine.state(item.image.sha256, submitted))


def _noted(records: Iterable[Record], stages: dict[str, tuple[str, str]]) -> Iterator[Record]:
    """The same records; stage and round of each are entered in ``stages``."""
    for record in records:
        stages[record.state.item_id] = (record.state.stage, record.state.round)
        yield record


class PullCounts(NamedTuple):
    """People's work between two pulls: annotations that are new, and older ones whose content has changed.

    Empty annotations exclude an annotator from a task and are not counted.
    """

    n_submitted: int
    n_skipped: int
    n_edited: int

    def __str__(self) -> str:
        parts = [f"{self.n_submitted:,} submission{'' if self.n_submitted == 1 else 's'}"]
        parts += [f"{self.n_skipped:,} skipped"] if self.n_skipped else []
        parts += [f"{self.n_edited:,} edited"] if self.n_edited else []
        return ", ".join(parts)


def last_version(journal: Journal) -> int:
    """The number of the newest version of an annotation; 0 for an empty journal."""
    with closing(sqlite3.connect(journal.path, timeout=60)) as reader:
        return int(reader.execute("select coalesce(max(seq), 0) from revisions").fetchone()[0])


def pulled_since(journal: Journal, after: int) -> PullCounts:
    """The work in versions after number ``after``; an annotation that is new and edited is one submission."""
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
    return PullCounts(n_submitted, n_skipped, len(edited))


def _content(annotation: dict[str, object]) -> object:
    return annotation.get("result"), bool(annotation.get("was_cancelled"))
