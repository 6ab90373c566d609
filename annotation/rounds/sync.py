"""One sync: pulls submissions, pushes the next tasks; an interrupted sync resumes with the next one.

1. for every round, tasks of an interrupted import are recovered by their keys, and changes since the last sync pulled;
2. accounts and the log of blocked submissions are read;
3. the states of records with new work are derived; the next work is demanded (durably, with its terms), then imported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from darkroom.annotation.label_studio.protocol import TaskServer
from darkroom.annotation.rounds.campaign import Campaign, annotation_digest
from darkroom.annotation.rounds.journal import Demand, Journal, Work
from darkroom.annotation.rounds.label_studio_tasks import record_task
from darkroom.annotation.rounds.planted_errors import is_selected, plant
from darkroom.annotation.rounds.record_state import ROUNDS, RecordState
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.task_exchange import BATCH, PendingTask, SyncCounts, TaskExchange
from darkroom.annotation.rounds.terms import Terms, terms_of
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.records.digest import digest

Say = Callable[[str], None]


class Record(NamedTuple):
    """An image of the pool, the work on it and the state of its record."""

    item: PoolImage
    works: list[Work]
    state: RecordState


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


def pending_tasks(
    records: Iterable[Record],
    journal: Journal,
    campaign: Campaign,
    *,
    pre_annotations: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    recorded_terms: Mapping[str, Terms] = MappingProxyType({}),
) -> Iterator[PendingTask]:
    """The tasks that records wait for and that were not handed out, under the terms of their demand, or today's."""
    frozen, today = journal.terms(), {round: terms_of(campaign, round) for round in ROUNDS}
    for item, works, state in records:
        stored = {work.demand.key(campaign.name): work for work in works}
        for demand, task_state in _next_demands(campaign, item, works, state):
            key = demand.key(campaign.name)
            if key in stored and stored[key].task_id is not None:
                continue
            stored_terms = frozen.get(stored[key].terms) if key in stored else None
            terms = stored_terms or recorded_terms.get(key) or today[demand.round]
            pre_annotation = pre_annotations.get(item.image.sha256)
            task = record_task(key, item, task_state, round=demand.round, terms=terms, pre_annotation=pre_annotation)
            yield PendingTask(terms.asked(demand), task, terms)


def _next_demands(
    campaign: Campaign, item: PoolImage, works: Sequence[Work], state: RecordState
) -> Iterator[tuple[Demand, RecordState]]:
    """The round the record waits for; parallel to an acceptance, a check of the record with a planted error."""
    if state.stage != "waiting":
        return
    waiting = state.next_demand or current_work(works, state).demand
    yield waiting, state
    if waiting.round != "accept" or waiting.attempt or waiting.serial or state.fields is None:
        return
    if is_selected(item.image.sha256, campaign.name, campaign.gold_share, seed=campaign.seed):
        size = (item.image.width, item.image.height)
        seed = f"{campaign.name} {item.image.sha256}" + (f" {campaign.seed}" if campaign.seed else "")
        planted = plant(state.fields, size, seed=seed)
        if planted is not None:
            experts = {verdict.person_id for verdict in state.verdicts}
            judges = [person for person in state.judges if person not in experts]
            shown = replace(state, fields=planted.fields, judges=judges)
            demand = waiting._replace(round="cross_check", planted_error=planted.kind, bases="")
            yield demand._replace(n_wanted=1, overlap=1 + len(shown.excluded)), shown


def build_state_machine(journal: Journal, campaign: Campaign) -> StateMachine:
    """The state machine with the journal's terms and accounts; the campaign's rules where none are frozen yet."""
    return StateMachine(
        max_share=campaign.max_share,
        max_rework=campaign.max_rework,
        people=journal.people(),
        terms=journal.terms(),
    )


def record_states(
    pool: Iterable[PoolImage], journal: Journal, machine: StateMachine, *, touched: bool = False
) -> Iterator[Record]:
    """Every image of the pool with its work and state, ordered by digest. Memory: the pool and one record.

    ``touched``: the pool is of touched items only.
    """
    works_by_item = journal.works(ROUNDS, touched=touched)
    item_id, works = next(works_by_item, ("", []))
    for item in sorted(pool, key=lambda item: item.image.sha256):
        while item_id and item_id < item.image.sha256:  # an image that is no longer in the pool
            item_id, works = next(works_by_item, ("", []))
        item_works = works if item_id == item.image.sha256 else []
        state = machine.state(item.image.sha256, (item.image.width, item.image.height), item_works)
        yield Record(item, item_works, state)


def current_work(works: Sequence[Work], state: RecordState) -> Work:
    """The work of the round that the record waits for, once it is demanded."""
    return max(
        (work for work in works if not work.demand.planted_error and work.demand.round == state.round),
        key=lambda work: (work.demand.attempt, work.demand.serial),
    )
