"""One sync: what people did comes in, what they can do next goes out. Killed anywhere, the next one goes on.

1. accounts and the gate's refusals are read;
2. of every round: tasks that a killed sync had imported are found by their keys; changes since the last sync come in;
3. records are walked; work that should be done is demanded (durably), then imported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from annotation import gold
from annotation.campaign import Campaign
from annotation.faults import AnnotationFault
from annotation.journal import Demand, Journal, Work
from annotation.rounds import ROUNDS, State, Walk
from annotation.studio import Studio
from annotation.tasks import N_SEATS, record_task
from pipelines.records import PoolImage

BATCH = 200
"""Tasks in one import: a few seconds, on either database."""
OVERLAP_SECONDS = 30
"""Changes are asked for again from so long before the last one seen: a transaction may end after a later one."""
Say = Callable[[str], None]


@dataclass(slots=True)
class Synced:
    """What one sync did."""

    n_revisions: int = 0
    imported: dict[str, int] = field(default_factory=dict)

    @property
    def anything(self) -> bool:
        """Whether anything came in or went out."""
        return bool(self.n_revisions or self.imported)


class Outgoing(NamedTuple):
    """A task to import: its demand and how to make it."""

    demand: Demand
    task: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sync:
    """One campaign against one server."""

    journal: Journal
    studio: Studio
    campaign: Campaign
    drafts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Predictions of a policy for the first round, by the image's sha256."""
    say: Say = print

    def run(self, pool: Sequence[PoolImage], *, reset_forms: bool = False, recreate: bool = False) -> Synced:
        """Raises ``AnnotationFault``, with all that came in before kept."""
        synced = Synced()
        with self.journal.lock():
            self.journal.set_people(self.studio.people())
            self._read_hits()
            for round in ROUNDS:
                self._ensure_project(round, reset_form=reset_forms, recreate=recreate)
                self._find_tasks(round)
                synced.n_revisions += self._pull(round)
            self._push(pool, synced)
        return synced

    def _read_hits(self) -> None:
        after = len(self.journal.hits())
        while hits := self.studio.hits(after):
            self.journal.add_hits(after, hits)
            after += len(hits)

    def _ensure_project(self, round: str, *, reset_form: bool, recreate: bool) -> None:
        known = self.journal.project(round)
        if known is not None:
            if reset_form:
                self.studio.reset_form(known[0], round)
            if self.studio.check_project(known[0], round):
                return
            if not recreate:
                raise AnnotationFault(
                    f"project {known[0]} of the round {round} is gone from {self.studio.url}. Restore the server from "
                    "a backup; or make it anew with `darkroom annotate sync --recreate`: what was submitted is kept, "
                    "unfinished work is handed out again"
                )
            self.journal.forget_project(round)
        created = self.studio.create_project(self.campaign.name, round, n_seats=N_SEATS[round])
        self.journal.set_project(round, created)

    def _find_tasks(self, round: str) -> None:
        """Enters tasks that are on the server and not in the journal: a sync was killed between import and entry."""
        project_id, last, watermark = self._project(round)
        found = list(self.studio.tasks_after(project_id, last))
        if not found:
            return
        demanded = self.journal.demanded([key for _, key in found])
        self.journal.add_tasks(project_id, [(key, task_id) for task_id, key in found if key in demanded])
        last = max(task_id for task_id, _ in found)
        self.journal.set_project(round, project_id, last_task=last, watermark=watermark)
        self._set_overlaps(round)

    def _pull(self, round: str) -> int:
        project_id, last, watermark = self._project(round)
        newest, n_new = watermark, 0
        changes = self.studio.changed_since(project_id, _earlier(watermark), n_seats=N_SEATS[round])
        while batch := list(islice(changes, BATCH)):
            with self.journal.transaction():
                for changed in batch:
                    n_new += self.journal.add_revisions(changed.task_id, changed.annotations)
            newest = max([newest, *(changed.updated_at for changed in batch)], key=_moment)
        self.journal.set_project(round, project_id, last_task=last, watermark=newest)
        return n_new

    def _push(self, pool: Sequence[PoolImage], synced: Synced) -> None:
        pending = self._pending(pool)
        while batch := list(islice(pending, BATCH)):
            self.journal.demand((one.demand for one in batch), campaign=self.campaign.name)
            by_round: dict[str, list[Outgoing]] = defaultdict(list)
            for one in batch:
                by_round[one.demand.round].append(one)
            for round, outgoing in by_round.items():
                self._import(round, outgoing)
                synced.imported[round] = synced.imported.get(round, 0) + len(outgoing)
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
                    draft=self.drafts.get(item.image.sha256),
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

    def _import(self, round: str, outgoing: Sequence[Outgoing]) -> None:
        project_id, last, watermark = self._project(round)
        task_ids = self.studio.import_tasks(project_id, [one.task for one in outgoing])
        if len(task_ids) != len(outgoing):
            raise AnnotationFault(
                f"{len(outgoing)} tasks were sent to project {project_id}, {len(task_ids)} arrived; sync again"
            )
        keys = [one.demand.key(self.campaign.name) for one in outgoing]
        self.journal.add_tasks(project_id, zip(keys, task_ids, strict=True))
        self.journal.set_project(round, project_id, last_task=max(last, *task_ids), watermark=watermark)
        self._set_overlaps(round)

    def _set_overlaps(self, round: str) -> None:
        """Tasks with more or fewer seats than their project reckons with get an overlap of their own."""
        unready = self.journal.unready(round)
        for key, task_id, demand in unready:
            if demand.overlap != 1 + N_SEATS[round]:
                self.studio.set_overlap(task_id, demand.overlap)
                self.journal.set_ready([key])
        self.journal.set_ready(key for key, _, _ in unready)

    def _project(self, round: str) -> tuple[int, int, str]:
        known = self.journal.project(round)
        assert known is not None, "every round has its project before anything is asked of it"
        return known


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


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at.replace("Z", "+00:00")) if at else datetime.fromisoformat("1970-01-01T00:00+00:00")


def _earlier(watermark: str) -> str:
    if not watermark:
        return ""
    earlier = _moment(watermark) - timedelta(seconds=OVERLAP_SECONDS)
    return earlier.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
