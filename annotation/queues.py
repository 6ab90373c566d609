"""Queues of single verdicts on the rounds' machinery: review of trajectories, verification of rows, suitability.

An item is shown once to one person; what they choose is the result. Nothing goes back and forth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from annotation import choices
from annotation.choices import names
from annotation.form_fields import by_name, chosen, signer, text
from annotation.handover import BATCH, Handover, Outgoing, Synced
from annotation.journal import Demand, Journal, Person, Revision, Work
from annotation.refusals import Refused, refusal
from pipelines.rejects import Reason, RowFault

MakeTask = Callable[[], Mapping[str, Any]]
"""Makes the data of an item's task."""


class Form(NamedTuple):
    """What a queue's form asks for: the field that holds the verdict, and what may be chosen there."""

    field: str
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]
    roles: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All fields of the form."""
        return (self.field, "reason", "comment")


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


def sync_queue(handover: Handover, round: str, items: Mapping[str, MakeTask]) -> Synced:
    """Hands out what of ``items`` was not handed out yet, and takes verdicts in. Raises ``AnnotationFault``."""
    synced = Synced()
    with handover.journal.lock():
        handover.read_people()
        synced.n_revisions = handover.take_in(round)
        pending = _pending(handover, round, items)
        while batch := list(islice(pending, BATCH)):
            synced.add(handover.hand_out(batch))
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


def _pending(handover: Handover, round: str, items: Mapping[str, MakeTask]) -> Iterator[Outgoing]:
    known = dict(handover.journal.works([round]))
    for item_id, make in items.items():
        if any(work.task_id is not None for work in known.get(item_id, ())):
            continue
        demand = Demand(round, item_id, 0, 0)
        data = {**make(), "key": demand.key(handover.campaign), "gate": {"kind": round}}
        yield Outgoing(demand, {"data": data})


def _read_work(item_id: str, work: Work, round: str, people: Mapping[int, Person], found: Verdicts) -> None:
    counted = False
    for states in work.annotations:
        revision = states[-1]
        if revision.raw.get("was_cancelled"):
            continue
        try:
            verdict = _read(item_id, revision, FORMS[round], people)
            if counted:
                raise RowFault(Reason.DUPLICATE_SUBMISSION, "an earlier annotation of this task counts")
        except RowFault as fault:
            found.refused.append(refusal(work, revision, fault, people))
        else:
            counted = True
            found.verdicts.append(verdict)


def _read(item_id: str, revision: Revision, form: Form, people: Mapping[int, Person]) -> Verdict:
    raw = revision.raw
    person = people.get(signer(raw))
    if person is None or person.role not in form.roles:
        raise RowFault(Reason.WRONG_PERSON, f"this queue is for the role {' or '.join(form.roles)}")
    found = by_name(raw, form.names)
    verdicts, reasons = chosen(found.get(form.field)), chosen(found.get("reason"))
    if len(verdicts) != 1 or verdicts[0] not in form.verdicts:
        raise RowFault(Reason.BREAKS_RULES, f"one of {', '.join(form.verdicts)} is asked for; found {list(verdicts)}")
    if verdicts[0] == "reject" and (not reasons or not set(reasons) <= set(form.reasons)):
        said = f"a rejection gives reasons of {', '.join(form.reasons)}; found {list(reasons)}"
        raise RowFault(Reason.BREAKS_RULES, said)
    return Verdict(
        item_id=item_id,
        chosen=verdicts[0],
        reasons=reasons if verdicts[0] == "reject" else (),
        comment=text(found.get("comment")),
        person=person.email,
        at=str(raw.get("created_at") or ""),
        lead_seconds=raw.get("lead_time"),
        task_id=revision.task_id,
    )
