"""Queues of single verdicts: one person judges an item once. Basis of review, verification and suitability.

An item's page is HTML: a trajectory with each thought, its code and output, or a problem without its answer.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from darkroom.annotation._plugin.darkroom_studio.content import read_verdict
from darkroom.annotation.label_studio.forms import (
    MATCHES,
    REVIEW_REASONS,
    ROUND_FORMS,
    SUITABILITIES,
    names,
    signer_of,
    templates,
)
from darkroom.annotation.label_studio.protocol import Person, TaskServer
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Demand, Journal, Revision, Work
from darkroom.annotation.rounds.submissions import InvalidSubmission, invalid_submission
from darkroom.annotation.rounds.task_exchange import BATCH, PendingTask, SyncCounts, TaskExchange
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError, storable
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.stage import StageReport, store_rows
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace

MakeTask = Callable[[], Mapping[str, Any]]
"""Makes the data of an item's task."""


class QueueForm(NamedTuple):
    """A queue's form: the field with the verdict, its options, and reject reasons."""

    field: str
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    def gate(self, round: str) -> dict[str, Any]:
        """The rules as a task carries them, for the server's gate."""
        return {"kind": round, "field": self.field, "choices": list(self.verdicts), "reasons": list(self.reasons)}


FORMS = {
    "review": QueueForm("verdict", ("accept", "reject"), names(REVIEW_REASONS)),
    "verify": QueueForm("match", names(MATCHES)),
    "suitability": QueueForm("helps", names(SUITABILITIES)),
}


@dataclass(frozen=True, slots=True)
class QueueVerdict:
    """One person's verdict on one item."""

    item_id: str
    verdict: str
    reasons: tuple[str, ...]
    comment: str
    person: str
    at: str
    lead_seconds: float | None
    task_id: int


@dataclass(slots=True)
class QueueVerdicts:
    """The verdicts of a queue."""

    verdicts: list[QueueVerdict] = field(default_factory=list)
    invalid: list[InvalidSubmission] = field(default_factory=list)
    n_waiting: int = 0


def sync_queue(exchange: TaskExchange, round: str, items: Mapping[str, MakeTask]) -> SyncCounts:
    """Pulls verdicts and hands out the new ones of ``items``. Raises ``AnnotationError``."""
    counts = SyncCounts()
    with exchange.journal.lock():
        counts.n_revisions = exchange.pull(round)
        exchange.pull_accounts()
        pending = _pending(exchange, round, items)
        while batch := list(islice(pending, BATCH)):
            counts.imported.update(exchange.push(batch))
    return counts


def read_verdicts(journal: Journal, round: str) -> QueueVerdicts:
    """The current verdicts of a queue."""
    queue, people = QueueVerdicts(), journal.people()
    for _, works in journal.works([round]):
        before = len(queue.verdicts)
        for work in works:
            _read_work(work, people, queue)
        queue.n_waiting += len(queue.verdicts) == before
    return queue


def _pending(exchange: TaskExchange, round: str, items: Mapping[str, MakeTask]) -> Iterator[PendingTask]:
    works = dict(exchange.journal.works([round]))
    for item_id, make in items.items():
        if any(work.task_id is not None for work in works.get(item_id, ())):
            continue
        demand = Demand(round, item_id, 0, 0)
        data = {**make(), "key": demand.key(exchange.campaign), "gate": FORMS[round].gate(round)}
        yield PendingTask(demand, {"data": data})


def _read_work(work: Work, people: Mapping[int, Person], queue: QueueVerdicts) -> None:
    is_valid = False
    for states in work.annotations:
        revision = states[-1]
        if revision.raw.get("was_cancelled"):
            continue
        try:
            verdict = _read(work.demand, revision, people)
            if is_valid:
                raise RowError(Reason.DUPLICATE_SUBMISSION, "an earlier annotation of this task counts")
        except RowError as error:
            queue.invalid.append(invalid_submission(work, revision, error, people))
        else:
            is_valid = True
            queue.verdicts.append(verdict)


def _read(demand: Demand, revision: Revision, people: Mapping[int, Person]) -> QueueVerdict:
    form, roles, raw = FORMS[demand.round], ROUND_FORMS[demand.round].roles, revision.raw
    person = people.get(signer_of(raw))
    held = revision.roles if revision.roles is not None else (person.role,) if person else ()
    if person is None or not set(held) & set(roles):
        raise RowError(Reason.WRONG_PERSON, f"this queue is for the role {' or '.join(roles)}")
    content = read_verdict(raw.get("result"), form.gate(demand.round))
    if content.problems:
        evidence = " ".join(problem.text for problem in content.problems)
        raise RowError(Reason(content.problems[0].reason), evidence)
    return QueueVerdict(
        item_id=demand.item_id,
        verdict=content.verdict,
        reasons=content.reasons if content.verdict == "reject" else (),
        comment=storable(content.texts["comment"]),
        person=person.email,
        at=str(raw.get("created_at") or ""),
        lead_seconds=raw.get("lead_time"),
        task_id=revision.task_id,
    )


def sample_ids(ids: Iterable[str], *, seed: int, queue: str, n_rows: int | None) -> list[str]:
    """A seeded sample of ``n_rows`` (None: all); a larger one contains the smaller."""
    return sorted(ids, key=lambda row: digest([seed, queue, row]))[:n_rows]


def write_labels(path: Path, labels: Iterable[Mapping[str, Any]]) -> None:
    """Writes lines for calibrating judges (``pipelines/verification/judges/calibration.py``)."""
    write_whole(path, "".join(json.dumps(label, ensure_ascii=False) + "\n" for label in labels))


def shards_of(tables: Tables, asset: tuple[str, ...], source: str = "") -> list[TableKey]:
    """The tables of an asset that are materialised, shard after shard, of one source or of all."""
    return [key for key in tables.keys(asset) if not source or source_of(key.partition) == source]


def item_page(sample: Sample, trajectory: Trajectory | None = None) -> str:
    """HTML for Label Studio's ``HyperText``: the problem without its answer, or a trajectory; all text is escaped."""
    page = templates(Path(__file__).with_name("templates")).get_template("page.html.jinja")
    return page.render(sample=sample, trajectory=trajectory)


@dataclass(frozen=True, slots=True)
class SourceQueue(ABC):
    """A queue of one source's samples; its verdicts are a table of ``kind`` with one partition per source."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal
    source: str

    round: ClassVar[str]
    kind: ClassVar[type[Any]]

    @property
    @abstractmethod
    def key(self) -> TableKey:
        """The source's table."""

    @abstractmethod
    def takes(self, sample: Sample) -> bool:
        """Whether a sample of the source belongs in this queue."""

    @abstractmethod
    def task(self, sample: Sample) -> Mapping[str, Any]:
        """The data of a sample's task."""

    def samples(self) -> dict[str, Sample]:
        """The source's samples for this queue, by id; empty if it was not materialised."""
        tables = self.workspace.tables
        rows = (row for key in shards_of(tables, SAMPLES, self.source) for row in tables.read(key, Sample))
        return {row.sample_id: row for row in rows if row.source == self.source and self.takes(row)}

    def sync(self, server: TaskServer, *, n_rows: int | None = None) -> SyncCounts:
        """Pulls verdicts and hands out a seeded sample of ``n_rows`` samples (None: all).

        A larger sample contains the smaller one. Raises ``AnnotationError``.
        """
        samples = self.samples()
        selected = sample_ids(samples, seed=self.campaign.seed, queue=self.round, n_rows=n_rows)
        return self.hand_out(server, {row: partial(self.task, samples[row]) for row in selected})

    def hand_out(self, server: TaskServer, items: Mapping[str, MakeTask]) -> SyncCounts:
        """Pulls verdicts and hands out exactly these items. Raises ``AnnotationError``."""
        return sync_queue(
            TaskExchange(self.journal, server, self.campaign.name, self.campaign.language), self.round, items
        )

    def materialize(self) -> StageReport:
        """The source's table; samples without a verdict are not in it."""
        ours, verdicts = self.samples(), read_verdicts(self.journal, self.round).verdicts
        rows = [
            self.kind(row.item_id, row.verdict, row.comment, row.person, row.at, row.lead_seconds)
            for row in verdicts
            if row.item_id in ours
        ]
        return store_rows(self.workspace.tables, self.key, self.kind, rows)

    def counts(self) -> Counter[str]:
        """The table's rows by verdict."""
        return Counter(row.verdict for row in self.workspace.tables.read(self.key, self.kind))
