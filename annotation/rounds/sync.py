"""One sync: pulls submissions, pushes the next tasks; an interrupted sync resumes with the next one.

1. accounts and the log of blocked submissions are read;
2. for every round, tasks of an interrupted import are recovered by their keys, and changes since the last sync pulled;
3. record states are derived; the next work is demanded (durably), then imported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from annotation.label_studio.protocol import TaskServer
from annotation.rounds.campaign import Campaign, annotation_digest
from annotation.rounds.journal import Demand, Journal, Work
from annotation.rounds.label_studio_tasks import record_task
from annotation.rounds.planted_errors import is_selected, plant
from annotation.rounds.state_machine import ROUNDS, RecordState, StateMachine
from annotation.rounds.task_exchange import BATCH, PendingTask, SyncCounts, TaskExchange
from pipelines.records import PoolImage
from pipelines.records.digest import digest

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

    def run(self, pool: Sequence[PoolImage], *, reset_forms: bool = False, recreate: bool = False) -> SyncCounts:
        """Raises ``AnnotationError``; what was pulled before is kept."""
        counts = SyncCounts()
        with self.journal.lock():
            exchange = TaskExchange(self.journal, self.server, self.campaign.name, self.campaign.language)
            exchange.pull_accounts()
            for round in ROUNDS:
                counts.n_revisions += exchange.pull(round, reset_form=reset_forms, recreate=recreate)
            if self.journal.settled != self._situation(pool):  # deriving every record's state takes a while
                pending = self._pending(pool)
                while batch := list(islice(pending, BATCH)):
                    counts.imported.update(exchange.push(batch))
                    self.say(f"handed out {counts.imported.total():,} tasks")
                self.journal.set_settled(self._situation(pool))
        return counts

    def _situation(self, pool: Sequence[PoolImage]) -> str:
        """Digest of everything that determines the next work."""
        images = sorted(item.image.sha256 for item in pool)
        return digest([self.journal.fingerprint, images, self.campaign.model_dump(mode="json"), annotation_digest()])

    def _pending(self, pool: Iterable[PoolImage]) -> Iterator[PendingTask]:
        machine = build_state_machine(self.journal, self.campaign)
        for item, works, state in record_states(pool, self.journal, machine):
            imported = {work.demand.key(self.campaign.name) for work in works if work.task_id is not None}
            for demand, task_state in self._next_demands(item, works, state):
                key = demand.key(self.campaign.name)
                if key in imported:
                    continue
                task = record_task(
                    key,
                    item.image,
                    task_state,
                    round=demand.round,
                    max_share=self.campaign.max_share,
                    pre_annotation=self.pre_annotations.get(item.image.sha256),
                )
                yield PendingTask(demand, task)

    def _next_demands(
        self, item: PoolImage, works: Sequence[Work], state: RecordState
    ) -> Iterator[tuple[Demand, RecordState]]:
        """The round the record waits for; parallel to an acceptance, a check of the record with a planted error."""
        if state.stage != "waiting":
            return
        waiting = state.next_demand or _current(works, state)
        yield waiting, state
        if waiting.round != "accept" or waiting.attempt or waiting.serial or state.fields is None:
            return
        if is_selected(item.image.sha256, self.campaign.name, self.campaign.gold_share):
            size = (item.image.width, item.image.height)
            planted = plant(state.fields, size, seed=f"{self.campaign.name} {item.image.sha256}")
            if planted is not None:
                demand = waiting._replace(round="cross_check", planted_error=planted.kind)
                yield demand, replace(state, fields=planted.fields)


def build_state_machine(journal: Journal, campaign: Campaign) -> StateMachine:
    """The state machine with the campaign's rules and the journal's accounts."""
    return StateMachine(max_share=campaign.max_share, max_rework=campaign.max_rework, people=journal.people())


def record_states(
    pool: Iterable[PoolImage], journal: Journal, machine: StateMachine
) -> Iterator[tuple[PoolImage, list[Work], RecordState]]:
    """Every image of the pool with its work and state, ordered by digest. Memory: the pool and one record."""
    works_by_item = journal.works(ROUNDS)
    item_id, works = next(works_by_item, ("", []))
    for item in sorted(pool, key=lambda item: item.image.sha256):
        while item_id and item_id < item.image.sha256:  # an image that is no longer in the pool
            item_id, works = next(works_by_item, ("", []))
        item_works = works if item_id == item.image.sha256 else []
        yield item, item_works, machine.state(item.image.sha256, (item.image.width, item.image.height), item_works)


def _current(works: Sequence[Work], state: RecordState) -> Demand:
    """The demand of the round that the record waits for."""
    return max(
        (work.demand for work in works if not work.demand.planted_error and work.demand.round == state.round),
        key=lambda demand: (demand.attempt, demand.serial),
    )
