"""Queues of single verdicts on the rounds' machinery: review of trajectories, verification of rows, suitability.

An item is shown once to one person; what they choose is the result. Nothing goes back and forth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from annotation import choices
from annotation.choices import names
from annotation.exchange import BATCH, Exchange, Outgoing, Synced
from annotation.journal import Demand, Journal, Person, Revision, Work
from annotation.rounds import Refused
from pipelines.rejects import Reason, RowFault, storable

MakeTask = Callable[[], Mapping[str, Any]]
"""Makes the data of an item's task."""


class Form(NamedTuple):
    """What a queue's form asks for: the field that holds the verdict, and what may be chosen there."""

    field: str
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]
    roles: tuple[str, ...]


FORMS = {
    "review": Form("verdict", ("accept", "reject"), names(choices.REVIEW_REASONS), ("expert",)),
    "verify": Form("match", names(choices.MATCHES), (), ("annotator", "expert")),
    "suitability": Form("helps", names(choices.SUITABILITIES), (), ("annotator", "expert")),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one person chose for one item."""

    item_id: str
    chosen: str
    reasons: tuple[str, ...]
    comment: str
    person: str
    at: str
    lead_seconds: float | None
    task_id: int


@dataclass(slots=True)
class Verdicts:
    """Everything that came of a queue."""

    verdicts: list[Verdict] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    n_waiting: int = 0


def sync_queue(exchange: Exchange, round: str, items: Mapping[str, MakeTask]) -> Synced:
    """Hands out what of ``items`` was not handed out yet, and takes verdicts in. Raises ``AnnotationFault``."""
    synced = Synced()
    with exchange.journal.lock():
        exchange.read_people()
        synced.n_revisions = exchange.take_in(round)
        pending = _pending(exchange, round, items)
        while batch := list(islice(pending, BATCH)):
            for name, n in exchange.hand_out(batch).items():
                synced.imported[name] = synced.imported.get(name, 0) + n
    return synced


def read_verdicts(journal: Journal, round: str) -> Verdicts:
    """Every item's verdict, as the journal has it now."""
    found, people = Verdicts(), journal.people()
    for item_id, works in journal.works([round]):
        before = len(found.verdicts)
        for work in works:
            _read_work(item_id, work, round, people, found)
        found.n_waiting += len(found.verdicts) == before
    return found


def _pending(exchange: Exchange, round: str, items: Mapping[str, MakeTask]) -> Iterator[Outgoing]:
    known = dict(exchange.journal.works([round]))
    for item_id, make in items.items():
        if any(work.task_id is not None for work in known.get(item_id, ())):
            continue
        demand = Demand(round, item_id, 0, 0)
        data = {**make(), "key": demand.key(exchange.campaign), "gate": {"kind": round}}
        yield Outgoing(demand, {"data": data})


def _read_work(item_id: str, work: Work, round: str, people: Mapping[int, Person], found: Verdicts) -> None:
    counted = False
    for revision in _latest(work.revisions):
        if revision.raw.get("was_cancelled"):
            continue
        try:
            verdict = _read(item_id, revision, FORMS[round], people)
            if counted:
                raise RowFault(Reason.DUPLICATE_SUBMISSION, "an earlier annotation of this task counts")
        except RowFault as fault:
            found.refused.append(_refused(work, revision, fault, people))
        else:
            counted = True
            found.verdicts.append(verdict)


def _read(item_id: str, revision: Revision, form: Form, people: Mapping[int, Person]) -> Verdict:
    raw = revision.raw
    person = people.get(raw.get("completed_by") or 0)
    if raw.get("updated_by") not in (None, raw.get("completed_by")):
        raise RowFault(Reason.FORGED_SUBMISSION, f"signed by account {raw.get('completed_by')}, entered by another")
    if person is None or person.role not in form.roles:
        raise RowFault(Reason.WRONG_PERSON, f"this queue is for the role {' or '.join(form.roles)}")
    chosen, reasons = _chosen(raw, form.field), _chosen(raw, "reason")
    if len(chosen) != 1 or chosen[0] not in form.verdicts:
        raise RowFault(Reason.BREAKS_RULES, f"one of {', '.join(form.verdicts)} is asked for; found {chosen}")
    if chosen[0] == "reject" and (not reasons or not set(reasons) <= set(form.reasons)):
        raise RowFault(Reason.BREAKS_RULES, f"a rejection gives reasons of {', '.join(form.reasons)}; found {reasons}")
    return Verdict(
        item_id=item_id,
        chosen=chosen[0],
        reasons=tuple(reasons) if chosen[0] == "reject" else (),
        comment=storable("\n".join(_texts(raw, "comment")).strip()),
        person=person.email,
        at=str(raw.get("created_at") or ""),
        lead_seconds=raw.get("lead_time"),
        task_id=revision.task_id,
    )


def _chosen(raw: Mapping[str, Any], name: str) -> list[str]:
    return [str(choice) for value in _values(raw, name) for choice in value.get("choices") or ()]


def _texts(raw: Mapping[str, Any], name: str) -> list[str]:
    return [str(text) for value in _values(raw, name) for text in value.get("text") or ()]


def _values(raw: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    results = raw.get("result")
    if not isinstance(results, list) or not all(isinstance(one, Mapping) for one in results):
        raise RowFault(Reason.BROKEN_SUBMISSION, "the result is no list of objects")
    return [one["value"] for one in results if one.get("from_name") == name and isinstance(one.get("value"), Mapping)]


def _latest(revisions: Iterable[Revision]) -> list[Revision]:
    """The last state of each annotation, oldest annotation first."""
    latest = {revision.annotation_id: revision for revision in revisions}
    return [latest[annotation_id] for annotation_id in sorted(latest)]


def _refused(work: Work, revision: Revision, fault: RowFault, people: Mapping[int, Person]) -> Refused:
    person = people.get(revision.raw.get("completed_by") or 0)
    where = (work.project_id or 0, revision.task_id, revision.annotation_id)
    return Refused(work.demand.round, person.email if person else "", fault.reason, fault.evidence, *where)
