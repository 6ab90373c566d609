"""One sync: what people did comes in, what they can do next goes out. Killed anywhere, the next one goes on.

1. accounts and the gate's refusals are read;
2. of every round: tasks that a killed sync had imported are found by their keys; changes since the last sync come in;
3. records are walked; work that should be done is demanded (durably), then imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from annotation import gold
from annotation.campaign import Campaign
from annotation.code import annotation_digest
from annotation.handover import BATCH, Handover, Outgoing, Synced
from annotation.journal import Demand, Journal, Work
from annotation.rounds import ROUNDS, State, Walk
from annotation.task_server import TaskServer
from annotation.tasks import record_task
from pipelines.digest import digest
from pipelines.records import PoolImage

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sync:
    """One campaign against one server."""

    journal: Journal
    studio: TaskServer
    campaign: Campaign
    pre_annotations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Predictions of a policy for the first round, by the image's sha256."""
    say: Say = print

    def run(self, pool: Sequence[PoolImage], *, reset_forms: bool = False, recreate: bool = False) -> Synced:
        """Raises ``AnnotationFault``, with all that came in before kept."""
        synced = Synced()
        with self.journal.lock():
            handover = Handover(self.journal, self.studio, self.campaign.name)
            handover.read_people()
            for round in ROUNDS:
                synced.n_revisions += handover.take_in(round, reset_form=reset_forms, recreate=recreate)
            if self.journal.settled != self._situation(pool):  # walking every record takes a while
                self._push(handover, pool, synced)
                self.journal.set_settled(self._situation(pool))
        return synced

    def _situation(self, pool: Sequence[PoolImage]) -> str:
        """All that determines which work should be handed out."""
        images = sorted(item.image.sha256 for item in pool)
        return digest([self.journal.fingerprint, images, self.campaign.model_dump(mode="json"), annotation_digest()])

    def _push(self, handover: Handover, pool: Sequence[PoolImage], synced: Synced) -> None:
        pending = self._pending(pool)
        while batch := list(islice(pending, BATCH)):
            synced.add(handover.hand_out(batch))
            self.say(f"handed out {sum(synced.imported.values()):,} tasks")

    def _pending(self, pool: Iterable[PoolImage]) -> Iterator[Outgoing]:
        walk = walk_of(self.journal, self.campaign)
        for item, works, state in states(pool, self.journal, walk):
            known = {work.demand.key(self.campaign.name): work for work in works}
            for demand, shown in self._wanted(item, works, state):
                key = demand.key(self.campaign.name)
                if key in known and known[key].task_id is not None:
                    continue
                task = record_task(
                    key,
                    item.image,
                    shown,
                    round=demand.round,
                    max_share=self.campaign.max_share,
                    pre_annotation=self.pre_annotations.get(item.image.sha256),
                )
                yield Outgoing(demand, task)

    def _wanted(self, item: PoolImage, works: Sequence[Work], state: State) -> Iterator[tuple[Demand, State]]:
        """The round that the record waits for; beside an expert's look, a check of the record with a planted error."""
        if state.stage != "waiting":
            return
        waiting = state.wanted or _current(works, state)
        yield waiting, state
        if waiting.round != "accept" or waiting.attempt or waiting.serial or state.fields is None:
            return
        if gold.is_chosen(item.image.sha256, self.campaign.name, self.campaign.gold_share):
            size = (item.image.width, item.image.height)
            planted = gold.plant(state.fields, size, seed=f"{self.campaign.name} {item.image.sha256}")
            if planted is not None:
                yield waiting._replace(round="cross_check", gold=planted.error), replace(state, fields=planted.fields)


def walk_of(journal: Journal, campaign: Campaign) -> Walk:
    """How the campaign's journal is read."""
    return Walk(max_share=campaign.max_share, max_rework=campaign.max_rework, people=journal.people())


def states(pool: Iterable[PoolImage], journal: Journal, walk: Walk) -> Iterator[tuple[PoolImage, list[Work], State]]:
    """Every image of the pool with its state, in the order of their digests. Memory: the pool and one record."""
    works = journal.works(ROUNDS)
    item_id, of_item = next(works, ("", []))
    for item in sorted(pool, key=lambda one: one.image.sha256):
        while item_id and item_id < item.image.sha256:  # an image that has left the pool
            item_id, of_item = next(works, ("", []))
        mine = of_item if item_id == item.image.sha256 else []
        yield item, mine, walk.state(item.image.sha256, (item.image.width, item.image.height), mine)


def _current(works: Sequence[Work], state: State) -> Demand:
    """The demand that a waiting record waits for."""
    return max(
        (work.demand for work in works if not work.demand.gold and work.demand.round == state.round),
        key=lambda demand: (demand.attempt, demand.serial),
    )
