"""Preview of what a sync or another role would change; nothing is changed.

Submitted work is judged by the terms and roles frozen at its hand-out, so it never changes its state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import FEWEST, Campaign, terms_of
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.next_tasks import pending_tasks
from darkroom.annotation.rounds.record_state import ROUNDS, Record
from darkroom.annotation.rounds.sync import record_states
from darkroom.pipelines.records import PoolImage


@dataclass(slots=True)
class SyncPreview:
    """Changes as of the last sync; later submissions are not known."""

    open_tasks: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Tasks without an answer, by round and what differs between their terms and today's."""
    next_tasks: Counter[str] = field(default_factory=Counter)
    """Tasks that a sync would hand out, by round."""

    def sentences(self) -> Iterator[str]:
        for (round, changes), n_tasks in self.open_tasks.items():
            if changes:
                keeps = "1 open task keeps its terms" if n_tasks == 1 else f"{n_tasks:,} open tasks keep their terms"
                yield f"{round}: {changes}, for tasks handed out from now on; {keeps}"
        yield "submitted work keeps its state"
        yield f"would hand out: {_counts(self.next_tasks)}"

    @property
    def open_by_round(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for (round, _), n_tasks in self.open_tasks.items():
            counts[round] += n_tasks
        return counts


def preview_sync(journal: Journal, campaign: Campaign, pool: Sequence[PoolImage]) -> SyncPreview:
    """Preview a sync of the campaign with this ``pool``, without asking the server."""
    preview = SyncPreview()
    frozen, today = journal.terms(), {round: terms_of(campaign, round) for round in ROUNDS}

    def counted(records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            state = record.state
            if state.stage == "waiting" and state.next_request is None:
                task = record.current_task
                changes = today[state.round].changes(frozen[task.terms]) if task.terms in frozen else []
                preview.open_tasks[state.round, ", ".join(changes)] += task.task_id is not None
            yield record

    records = counted(record_states(pool, journal, campaign))
    preview.next_tasks.update(task.request.round for task in pending_tasks(records, journal, campaign))
    return preview


def preview_role(email: str, role: str, people: Iterable[Person], open_tasks: Counter[str]) -> Iterator[str]:
    """Preview an account's change to this role; ``open_tasks`` by round."""
    team = {person.email: person.role for person in people}
    before = team.get(email)
    if before is None:
        yield f"{email}: new account, {role}"
        return
    if before == role:
        yield f"{email}: {role} already, nothing changes"
        return
    yield f"{email}: {before or 'no role'} -> {role}; what they submitted, and what is handed out, keeps counting"
    team[email] = role
    lost = [round for round in ROUNDS if before in ROUND_FORMS[round].roles and role not in ROUND_FORMS[round].roles]
    n_left = sum(held == before for held in team.values())
    if lost:
        tasks = _counts(Counter({round: open_tasks[round] for round in lost}))
        yield f"  they no longer open {', '.join(lost)}; open there: {tasks}, for {n_left:,} other {before}s"
    n_checking = sum(held == "checker" for held in team.values())
    if before == "annotator" and n_left + n_checking < FEWEST:
        members = f"{n_left} annotators{f' and {n_checking} checkers' if n_checking else ''}"
        yield f"  {members} are left: a rejected record may find nobody who has not worked on it"
    elif lost and not n_left:
        yield f"  nobody is left for {', '.join(lost)}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{n:,} × {round}" for round, n in counts.items() if n) or "nothing"
