"""What goes to the server and comes back, for one round at a time; every step can be killed and done again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from annotation.faults import AnnotationFault
from annotation.journal import Demand, Journal
from annotation.task_server import TaskServer
from annotation.tasks import N_SEATS

BATCH = 200
"""Tasks in one import: a few seconds, on either database."""
OVERLAP_SECONDS = 30
"""Changes are asked for again from so long before the last pull: a transaction may end late, clocks have seconds."""


@dataclass(slots=True)
class Synced:
    """What one sync did."""

    n_revisions: int = 0
    imported: dict[str, int] = field(default_factory=dict)

    def add(self, imported: Mapping[str, int]) -> None:
        """So many more tasks of which round."""
        for round, n in imported.items():
            self.imported[round] = self.imported.get(round, 0) + n


class Outgoing(NamedTuple):
    """A task to import, and what it is for."""

    demand: Demand
    task: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Handover:
    """One campaign's journal and the server. Hold the journal's lock while using it."""

    journal: Journal
    studio: TaskServer
    campaign: str

    def read_people(self) -> None:
        """Accounts, and what the gate refused."""
        self.journal.set_people(self.studio.people())
        after = len(self.journal.hits())
        while hits := self.studio.hits(after):
            self.journal.add_hits(after, hits)
            after += len(hits)

    def take_in(self, round: str, *, reset_form: bool = False, recreate: bool = False) -> int:
        """Makes or checks the round's project, finds tasks that a killed sync imported, and takes in what changed.

        Returns the number of new states of annotations. Raises ``AnnotationFault``.
        """
        self._ensure_project(round, reset_form=reset_form, recreate=recreate)
        self._find_tasks(round)
        return self._pull(round)

    def hand_out(self, outgoing: Sequence[Outgoing]) -> dict[str, int]:
        """Demands work (durably), then imports its tasks; returns how many of which round."""
        self.journal.demand((one.demand for one in outgoing), campaign=self.campaign)
        by_round: dict[str, list[Outgoing]] = {}
        for one in outgoing:
            by_round.setdefault(one.demand.round, []).append(one)
        for round, of_round in by_round.items():
            self._import(round, of_round)
        return {round: len(of_round) for round, of_round in by_round.items()}

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
        created = self.studio.create_project(self.campaign, round, n_seats=N_SEATS[round])
        self.journal.set_project(round, created)

    def _find_tasks(self, round: str) -> None:
        """Enters tasks that are on the server and not in the journal: a sync was killed between import and entry.

        Of two tasks for one demand (the server finished an import that had been given up) the younger one goes.
        """
        project_id, last, watermark = self._project(round)
        found = list(self.studio.tasks_after(project_id, last))
        if not found:
            return
        demanded = self.journal.demanded([one.key for one in found])
        ours = [one for one in found if one.key in demanded]
        self.journal.add_tasks(project_id, [(one.key, one.task_id) for one in ours])
        known = self.journal.task_ids([one.key for one in ours])
        for one in ours:
            if known[one.key] != one.task_id and one.n_annotations <= N_SEATS[round]:
                self.studio.delete_task(one.task_id)
        last = max(one.task_id for one in found)
        self.journal.set_project(round, project_id, last_task=last, watermark=watermark)
        self._set_overlaps(round)

    def _pull(self, round: str) -> int:
        project_id, last, watermark = self._project(round)
        started, n_new = self.studio.now(), 0  # what changes while pages are read is asked for again
        changes = self.studio.changed_since(project_id, _earlier(watermark), n_seats=N_SEATS[round])
        while batch := list(islice(changes, BATCH)):
            with self.journal.transaction():
                for changed in batch:
                    n_new += self.journal.add_revisions(changed.task_id, changed.annotations)
        self.journal.set_project(round, project_id, last_task=last, watermark=started.isoformat())
        return n_new

    def _import(self, round: str, outgoing: Sequence[Outgoing]) -> None:
        project_id, last, watermark = self._project(round)
        task_ids = self.studio.import_tasks(project_id, [one.task for one in outgoing])
        if len(task_ids) != len(outgoing):
            raise AnnotationFault(
                f"{len(outgoing)} tasks were sent to project {project_id}, {len(task_ids)} arrived; sync again"
            )
        keys = [one.demand.key(self.campaign) for one in outgoing]
        self.journal.add_tasks(project_id, zip(keys, task_ids, strict=True))
        self.journal.set_project(round, project_id, last_task=max(last, *task_ids), watermark=watermark)
        self._set_overlaps(round)

    def _set_overlaps(self, round: str) -> None:
        """Tasks with more or fewer seats than their project reckons with get an overlap of their own."""
        unready = self.journal.unready(round)
        other = {task_id: demand.overlap for _, task_id, demand in unready if demand.overlap != 1 + N_SEATS[round]}
        if other:
            self.studio.set_overlaps(other)
        self.journal.set_ready(key for key, _, _ in unready)

    def _project(self, round: str) -> tuple[int, int, str]:
        known = self.journal.project(round)
        assert known is not None, "every round has its project before anything is asked of it"
        return known


def _earlier(watermark: str) -> str:
    if not watermark:
        return ""
    earlier = datetime.fromisoformat(watermark) - timedelta(seconds=OVERLAP_SECONDS)
    return earlier.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
