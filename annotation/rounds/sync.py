"""One sync, and a preview of it: pulls submissions, pushes the next tasks; an interrupted one resumes with the next.

1. for every round, tasks of an interrupted import are recovered by their keys, and changes since the last sync pulled;
2. accounts and the log of blocked submissions are read;
3. the states of changed records are derived; the next tasks are requested (durably, with their terms), then imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.label_studio.protocol import Person, TaskServer
from darkroom.annotation.rounds.campaign import FEWEST, Campaign, Terms, annotation_digest, terms_of
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.next_tasks import pending_tasks
from darkroom.annotation.rounds.state_machine import StateMachine
from darkroom.annotation.rounds.submissions import ROUNDS, Record, SubmissionReader
from darkroom.annotation.rounds.task_exchange import BATCH, TaskExchange
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.row_files import by_key

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
    recorded_terms: Mapping[str, Terms | None] = field(default_factory=dict)
    """Terms of a recording's tasks, by key."""
    note: Say = lambda terms: None
    """Called with changed terms that were put in force."""

    def run(self, pool: Sequence[PoolImage], *, reset_forms: bool = False, recreate: bool = False) -> Counter[str]:
        """Returns the tasks handed out, by round. Raises ``AnnotationError``; what was pulled before is kept."""
        with self.journal.lock():
            exchange = TaskExchange(self.journal, self.server, self.campaign)
            for round in ROUNDS:
                exchange.pull(round, reset_form=reset_forms, recreate=recreate)
            if reset_forms or recreate:
                exchange.restore_queues(reset_form=reset_forms, recreate=recreate)
            exchange.open_checks(self.campaign.annotators_check)
            exchange.pull_accounts()
            exchange.withdraw_outdated()
            for round in ROUNDS:
                self._report_lost_tasks(round)
            self._put_terms_in_force(exchange)
            return self._hand_out(pool, exchange)

    def _hand_out(self, pool: Sequence[PoolImage], exchange: TaskExchange) -> Counter[str]:
        """Derive the states of changed records only, unless an input of all records changed."""
        images, people = sorted(item.image.sha256 for item in pool), [*map(list, self.journal.people().values())]
        campaign = self.campaign.seeded(self.journal.seed)
        inputs = digest([people, images, campaign.model_dump(mode="json"), annotation_digest()])
        complete = self.journal.synced != inputs
        changed = set() if complete else self.journal.changed()
        handed_out: Counter[str] = Counter()
        if not complete and not changed:
            return handed_out
        stages: dict[str, tuple[str, str]] = {}
        selected = pool if complete else [item for item in pool if item.image.sha256 in changed]
        records = _noted(record_states(selected, self.journal, self.campaign, changed=not complete), stages)
        drafts, terms = self.pre_annotations, self.recorded_terms
        pending = pending_tasks(records, self.journal, campaign, pre_annotations=drafts, recorded_terms=terms)
        while batch := list(islice(pending, BATCH)):
            handed_out += exchange.push(batch)
            n_tasks = handed_out.total()
            self.say(f"handed out {n_tasks:,} task{'' if n_tasks == 1 else 's'}")
        self.journal.set_synced(inputs, stages, complete=complete)
        return handed_out

    def _put_terms_in_force(self, exchange: TaskExchange) -> None:
        """From here on tasks go out under today's rules; those that are out keep theirs."""
        changed: dict[str, list[str]] = {}
        for round in ROUNDS:
            today = terms_of(self.campaign.seeded(self.journal.seed), round)
            exchange.freeze_old_terms(round, today)
            before = self.journal.put_in_force(round, today)
            if before is not None:
                changed.setdefault(", ".join(today.changes(before)), []).append(round)
        for change, rounds in changed.items():
            self.say(f"{change}: applies to tasks of {', '.join(rounds)} handed out from now on")
            self.note(f"terms of {', '.join(rounds)}: {change}")

    def _report_lost_tasks(self, round: str) -> None:
        project = self.journal.project(round)
        n_lost = self.journal.n_tasks(project.project_id) - self.server.n_tasks(project.project_id) if project else 0
        if n_lost > 0:
            lost = "1 task is" if n_lost == 1 else f"{n_lost:,} tasks are"
            doctor = "`darkroom annotate doctor` says which, and `darkroom annotate doctor --repair` hands out again"
            self.say(f"{round}: {lost} missing on the server; {doctor} what is unfinished")


def record_states(
    pool: Iterable[PoolImage], journal: Journal, campaign: Campaign, *, changed: bool = False
) -> Iterator[Record]:
    """Every image of the pool with tasks and state, by digest; ``changed``: the pool has changed items only."""
    reader = SubmissionReader(journal.terms(), Terms(campaign.max_share, campaign.max_rework))
    machine = StateMachine(journal.people())
    tasks_by_item = journal.record_tasks(ROUNDS, changed=changed)
    item_id, tasks = next(tasks_by_item, ("", []))
    for item in sorted(pool, key=lambda item: item.image.sha256):
        while item_id and item_id < item.image.sha256:  # an image that is no longer in the pool
            item_id, tasks = next(tasks_by_item, ("", []))
        item_tasks = tasks if item_id == item.image.sha256 else []
        submitted = reader.read(item_tasks, (item.image.width, item.image.height))
        yield Record(item, item_tasks, machine.state(item.image.sha256, submitted))


def _noted(records: Iterable[Record], stages: dict[str, tuple[str, str]]) -> Iterator[Record]:
    for record in records:
        stages[record.state.item_id] = (record.state.stage, record.state.round)
        yield record


def pulled_since(journal: Journal, after: int) -> str:
    """People's work in versions after number ``after``, "2 submissions, 1 edited". An annotation that is new and edited
    is one submission; empty ones exclude an annotator from a task and are not counted."""
    n_submitted = n_skipped = 0
    new, edited = set[int](), set[int]()
    for annotation_id, annotation, previous in journal.versions_after(after):
        if previous is not None:
            if annotation_id not in new and _content(annotation) != _content(previous):
                edited.add(annotation_id)
            continue
        new.add(annotation_id)
        if annotation.get("was_cancelled"):
            n_skipped += 1
        elif annotation.get("result"):
            n_submitted += 1
    parts = [f"{n_submitted:,} submission{'' if n_submitted == 1 else 's'}"]
    parts += [f"{n:,} {what}" for n, what in ((n_skipped, "skipped"), (len(edited), "edited")) if n]
    return ", ".join(parts)


def _content(annotation: dict[str, object]) -> object:
    return annotation.get("result"), bool(annotation.get("was_cancelled"))


@dataclass(slots=True)
class SyncPreview:
    """Changes as of the last sync. Submitted work is judged by frozen terms and roles: its state never changes."""

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


def preview_sync(journal: Journal, campaign: Campaign, pool: Sequence[PoolImage]) -> SyncPreview:
    """Preview a sync of the campaign with this ``pool``, without asking the server."""
    preview, campaign = SyncPreview(), campaign.seeded(journal.seed)
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


def preview_role(email: str, role: str, people: Iterable[Person], preview: SyncPreview) -> Iterator[str]:
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
        of_round = by_key((round, n) for (round, _), n in preview.open_tasks.items())
        tasks = _counts(Counter({round: sum(of_round[round]) for round in lost}))
        yield f"  they no longer open {', '.join(lost)}; open there: {tasks}, for {n_left:,} other {before}s"
    n_checking = sum(held == "checker" for held in team.values())
    if before == "annotator" and n_left + n_checking < FEWEST:
        members = f"{n_left} annotators{f' and {n_checking} checkers' if n_checking else ''}"
        yield f"  {members} are left: a rejected record may find nobody who has not worked on it"
    elif lost and not n_left:
        yield f"  nobody is left for {', '.join(lost)}"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{n:,} × {round}" for round, n in counts.items() if n) or "nothing"
