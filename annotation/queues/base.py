"""Queues of single verdicts: one person judges an item once. Basis of review, verification and suitability."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from markupsafe import Markup

from darkroom.annotation._plugin.darkroom_studio.content import read_verdict
from darkroom.annotation.label_studio.forms import OPTIONS, ROUND_FORMS, names
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import AnnotationVersion, RecordTask, TaskRequest
from darkroom.annotation.rounds.state_machine import invalid_submission
from darkroom.annotation.rounds.submissions import InvalidSubmission, require_no_problems, signer_of, worked_seconds
from darkroom.annotation.rounds.task_exchange import BATCH, PendingTask, TaskExchange
from darkroom.pipelines.inspection.gallery.entries import entry_of_record
from darkroom.pipelines.publishing.rendering import render
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import Reason, RowError, storable
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.tables import TableKey, Tables

MakeTask = Callable[[], Mapping[str, Any]]


def _gate(round: str, field: str, choices: Sequence[str], reasons: Sequence[str] = ()) -> dict[str, Any]:
    return {"kind": round, "field": field, "choices": list(choices), "reasons": list(reasons)}


GATES = {
    "review": _gate("review", "verdict", ("accept", "reject"), names(OPTIONS["review_reasons"])),
    "verify": _gate("verify", "match", names(OPTIONS["matches"])),
    "suitability": _gate("suitability", "helps", names(OPTIONS["suitabilities"])),
}
"""The rules of each queue's tasks, as the server reads them: the verdict's field and options, reject reasons."""


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


@dataclass(slots=True)
class QueueVerdicts:
    """The verdicts of a queue."""

    verdicts: list[QueueVerdict] = field(default_factory=list)
    invalid: list[InvalidSubmission] = field(default_factory=list)
    n_waiting: int = 0


def sync_queue(exchange: TaskExchange, round: str, items: Mapping[str, MakeTask]) -> int:
    """Pull verdicts and hand out the new ones of ``items``; returns their number. Raises ``AnnotationError``."""
    n_tasks = 0
    with exchange.journal.lock():
        exchange.pull(round)
        exchange.pull_accounts()
        pending = _pending(exchange, round, items)
        while batch := list(islice(pending, BATCH)):
            n_tasks += exchange.push(batch).total()
    return n_tasks


def read_verdicts(journal: Journal, round: str) -> QueueVerdicts:
    queue, people = QueueVerdicts(), journal.people()
    for _, tasks in journal.record_tasks([round]):
        before = len(queue.verdicts)
        for task in tasks:
            _read_task(task, people, queue)
        queue.n_waiting += len(queue.verdicts) == before
    return queue


def _pending(exchange: TaskExchange, round: str, items: Mapping[str, MakeTask]) -> Iterator[PendingTask]:
    tasks = dict(exchange.journal.record_tasks([round]))
    for item_id, make in items.items():
        if any(task.task_id is not None for task in tasks.get(item_id, ())):
            continue
        yield PendingTask(TaskRequest(round, item_id, 0, 0), {"data": {**make(), "gate": GATES[round]}})


def _read_task(task: RecordTask, people: Mapping[int, Person], queue: QueueVerdicts) -> None:
    is_valid = False
    for versions in task.annotations:
        version = versions[-1]
        if version.raw.get("was_cancelled"):
            continue
        try:
            verdict = _read(task.request, version, people)
            if is_valid:
                raise RowError(Reason.DUPLICATE_SUBMISSION, "an earlier annotation of this task counts")
        except RowError as error:
            queue.invalid.append(invalid_submission(task, version, error, people))
        else:
            is_valid = True
            queue.verdicts.append(verdict)


def _read(request: TaskRequest, version: AnnotationVersion, people: Mapping[int, Person]) -> QueueVerdict:
    roles, raw = ROUND_FORMS[request.round].roles, version.raw
    person = people.get(signer_of(raw))
    held = (person.role,) if version.roles is None and person is not None else version.roles
    if person is None or not set(held or ()) & set(roles):
        raise RowError(Reason.WRONG_PERSON, f"this queue is for the role {' or '.join(roles)}")
    content = read_verdict(raw.get("result"), GATES[request.round])
    require_no_problems(content)
    reasons = content.reasons if content.verdict == "reject" else ()
    comment, at = storable(content.texts["comment"]), str(raw.get("created_at") or "")
    return QueueVerdict(request.item_id, content.verdict, reasons, comment, person.email, at, worked_seconds(raw))


def sample_ids(ids: Iterable[str], *, seed: int, queue: str, n_rows: int | None) -> list[str]:
    """A seeded sample of ``n_rows`` (None: all); a larger one contains the smaller."""
    return sorted(ids, key=lambda row: digest([seed, queue, row]))[:n_rows]


def write_labels(path: Path, labels: Iterable[Mapping[str, Any]]) -> None:
    """Write lines for calibrating judges (``pipelines/verification/judges/calibration.py``)."""
    write_whole(path, "".join(json.dumps(label, ensure_ascii=False) + "\n" for label in labels))


def shards_of(tables: Tables, asset: tuple[str, ...], source: str = "") -> list[TableKey]:
    """The tables of an asset that are materialised, shard after shard, of one source or of all."""
    return [key for key in tables.keys(asset) if not source or source_of(key.partition) == source]


def page_task(sample: Sample, trajectory: Trajectory | None = None) -> dict[str, Any]:
    """The data of a task with a page, HTML for Label Studio's ``HyperText`` with all text escaped: a trajectory with
    each thought, its code and output, or the problem without its answer."""
    article = entry_of_record(sample, trajectory).html(Markup('src="/darkroom/images/{}"').format)
    return {"page": render("page.html.jinja", Path(__file__).with_name("templates"), article=Markup(article))}
