"""Queues of single verdicts: one person judges an item once. Basis of review, verification and suitability.

An item's page is HTML: a trajectory with each thought, its code and output, or a problem without its answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from annotation.label_studio.forms import (
    MATCHES,
    REVIEW_REASONS,
    SUITABILITIES,
    choices_of,
    names,
    results_by_field,
    signer_of,
    text_of,
)
from annotation.label_studio.protocol import Person
from annotation.rounds.journal import Demand, Journal, Revision, Work
from annotation.rounds.submissions import InvalidSubmission, invalid_submission
from annotation.rounds.task_exchange import BATCH, PendingTask, SyncCounts, TaskExchange
from pipelines.generation.stage import SAMPLES
from pipelines.records import ImageRef, Round, Sample, Trajectory
from pipelines.records.digest import digest
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.storage.atomic_write import write_whole
from pipelines.storage.tables import TableKey, Tables

MakeTask = Callable[[], Mapping[str, Any]]
"""Makes the data of an item's task."""
STYLE = (
    "<style>.tr{font:15px/1.5 sans-serif;max-width:900px}.tr h3{margin:18px 0 4px;font-size:15px}"
    ".tr pre{background:#f4f5f7;padding:10px;border-radius:6px;overflow-x:auto;white-space:pre-wrap}"
    ".tr pre{font-family:monospace;font-size:13px}"
    ".tr img{max-width:100%;max-height:520px;border:1px solid #d0d4da;border-radius:4px;margin:4px 8px 4px 0}"
    ".tr .out{border-left:4px solid #9db4d0;padding-left:10px}.tr .q{font-size:17px;font-weight:600}</style>"
)


class QueueForm(NamedTuple):
    """A queue's form: the field with the verdict, its options, reject reasons and the roles that may answer."""

    field: str
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]
    roles: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field, "reason", "comment")


FORMS = {
    "review": QueueForm("verdict", ("accept", "reject"), names(REVIEW_REASONS), ("expert",)),
    "verify": QueueForm("match", names(MATCHES), (), ("annotator", "expert")),
    "suitability": QueueForm("helps", names(SUITABILITIES), (), ("annotator", "expert")),
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
        exchange.pull_accounts()
        counts.n_revisions = exchange.pull(round)
        pending = _pending(exchange, round, items)
        while batch := list(islice(pending, BATCH)):
            counts.add(exchange.push(batch))
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
        data = {**make(), "key": demand.key(exchange.campaign), "gate": {"kind": round}}
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
    form, raw = FORMS[demand.round], revision.raw
    person = people.get(signer_of(raw))
    if person is None or person.role not in form.roles:
        raise RowError(Reason.WRONG_PERSON, f"this queue is for the role {' or '.join(form.roles)}")
    results = results_by_field(raw, form.fields)
    verdicts, reasons = choices_of(results.get(form.field)), choices_of(results.get("reason"))
    if len(verdicts) != 1 or verdicts[0] not in form.verdicts:
        raise RowError(Reason.BREAKS_RULES, f"one of {', '.join(form.verdicts)} is asked for; found {list(verdicts)}")
    if verdicts[0] == "reject" and (not reasons or not set(reasons) <= set(form.reasons)):
        evidence = f"a rejection gives reasons of {', '.join(form.reasons)}; found {list(reasons)}"
        raise RowError(Reason.BREAKS_RULES, evidence)
    return QueueVerdict(
        item_id=demand.item_id,
        verdict=verdicts[0],
        reasons=reasons if verdicts[0] == "reject" else (),
        comment=text_of(results.get("comment")),
        person=person.email,
        at=str(raw.get("created_at") or ""),
        lead_seconds=raw.get("lead_time"),
        task_id=revision.task_id,
    )


def sample_ids(ids: Iterable[str], *, seed: int, queue: str, n_rows: int | None) -> list[str]:
    """A seeded sample of ``n_rows`` (None: all); a larger one contains the smaller."""
    return sorted(ids, key=lambda row: digest([seed, queue, row]))[:n_rows]


def write_labels(path: Path, labels: Iterable[Mapping[str, Any]]) -> None:
    """Writes lines for calibrating judges (``pipelines/verification/judges/labels.py``)."""
    write_whole(path, "".join(json.dumps(label, ensure_ascii=False) + "\n" for label in labels))


def samples_of(tables: Tables, source: str) -> Iterator[Sample]:
    """The samples of one source, shard after shard; none if it was not materialised."""
    for path in sorted(tables.root.joinpath(*SAMPLES).glob(f"{source}-[0-9]*.parquet")):
        if not path.name.endswith(".rejects.parquet"):
            rows = tables.read(TableKey(SAMPLES, path.stem), Sample)
            yield from (sample for sample in rows if sample.source == source)


def problem_page(sample: Sample) -> str:
    """Question, choices and images, without the answer."""
    parts = [f'<p class="q">{_text(sample.question)}</p>', *(f"<p>{_text(choice)}</p>" for choice in sample.choices)]
    return "".join([STYLE, '<div class="tr">', *parts, _images(sample.images), "</div>"])


def trajectory_page(sample: Sample, trajectory: Trajectory) -> str:
    """HTML for Label Studio's ``HyperText``; all text of the row is escaped."""
    parts = [
        STYLE,
        '<div class="tr">',
        f'<p class="q">{_text(sample.question)}</p>',
        *(f"<p>{_text(choice)}</p>" for choice in sample.choices),
        _images(trajectory.images),
    ]
    for number, turn in enumerate(trajectory.rounds, 1):
        parts += [f"<h3>Round {number}</h3>", *_round(turn)]
    parts += ["<h3>Conclusion</h3>", f"<p>{_text(trajectory.final_thought)}</p>"]
    parts += [f"<p><b>Answer: {_text(trajectory.answer)}</b> (expected: {_text(sample.answer)})</p>", "</div>"]
    return "".join(parts)


def _round(turn: Round) -> list[str]:
    observation = turn.observation
    text = f"<pre>{escape(observation.text)}</pre>" if observation.text else ""
    error = f"<pre>{escape(observation.error)}</pre>" if observation.error else ""
    return [
        f"<p>{_text(turn.thought)}</p>",
        f"<pre>{escape(turn.code)}</pre>",
        f'<div class="out"><p>{escape(observation.status)}</p>{text}{error}{_images(observation.images)}</div>',
    ]


def _images(images: Sequence[ImageRef]) -> str:
    return "".join(f'<img src="/darkroom/images/{image.sha256}" alt="image {n}">' for n, image in enumerate(images))


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")
