"""Exchange of tasks with the server, one round at a time; every step can be interrupted and repeated."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.forms import ROUND_FORMS, round_guide
from darkroom.annotation.label_studio.protocol import TaskServer
from darkroom.annotation.rounds.campaign import Campaign, Terms
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import RoundProject, TaskRequest
from darkroom.annotation.rounds.submissions import ROUNDS
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.row_files import by_key

BATCH = 200
"""Tasks in one import: a few seconds, on either database."""
OVERLAP_SECONDS = 30
"""Each pull starts this long before the last one: a transaction may end late, and clocks have seconds."""


class PendingTask(NamedTuple):
    """A task to import, its request, and its terms (None: a queue's)."""

    request: TaskRequest
    task: dict[str, Any]
    terms: Terms | None = None


@dataclass(frozen=True, slots=True)
class TaskExchange:
    """One campaign's journal and the server. Hold the journal's lock while using it."""

    journal: Journal
    server: TaskServer
    campaign: Campaign

    def pull_accounts(self) -> None:
        """Store accounts and blocked submissions; after the submissions, whose signers' roles it freezes."""
        self.journal.set_people(self.server.people())
        after = self.journal.n_blocked
        while entries := self.server.blocked_submissions(after):
            self.journal.add_blocked(after, entries)
            after += len(entries)

    def pull(self, round: str, *, reset_form: bool = False, recreate: bool = False) -> None:
        """Recover tasks of an interrupted import and store changes."""
        self._ensure_project(round, reset_form=reset_form, recreate=recreate)
        self._recover_tasks(round)
        self.server.unheld_locks(self._project(round).project_id, release=True)
        self._pull_changes(round)

    def restore_queues(self, *, reset_form: bool, recreate: bool) -> None:
        """Restore the queues' projects that there are; their tasks are pulled and handed out by their commands."""
        for queue in ROUND_FORMS:
            if queue not in ROUNDS and self.journal.project(queue) is not None:
                self._ensure_project(queue, reset_form=reset_form, recreate=recreate)

    def open_checks(self, annotators_check: bool) -> None:
        roles = [role for role in ROUND_FORMS["cross_check"].roles if annotators_check or role == "checker"]
        self.server.open_to(self._project("cross_check").project_id, self.campaign.name, "cross_check", roles)

    def withdraw_outdated(self) -> None:
        """Take back tasks whose base was corrected before they were begun: they are requested anew."""
        if outdated := self.journal.outdated():
            self.journal.withdraw(self.server.withdraw(outdated))

    def freeze_old_terms(self, round: str, today: Terms) -> None:
        """Freeze the terms of tasks that a version before terms handed out: the server has their limit."""
        missing, project = self.journal.without_terms(round), self.journal.project(round)
        if not missing:
            return
        listed = self.server.tasks_after(project.project_id, 0) if project else ()
        limits = {task.key: task.data["gate"]["max_share"] for task in listed if "gate" in task.data}
        old = Terms(today.max_share, today.max_rework, categories=today.categories)
        self.journal.set_terms({key: old._replace(max_share=limits.get(key, old.max_share)) for key in missing})

    def push(self, pending: Sequence[PendingTask]) -> Counter[str]:
        """Store the requests durably, then import their tasks; returns the number of tasks by round."""
        terms = {task.request: task.terms for task in pending if task.terms is not None}
        keys = self.journal.request((task.request for task in pending), terms=terms)
        for key, named in zip(keys, pending, strict=True):
            named.task["data"]["key"] = key
        by_round = by_key((task.request.round, task) for task in pending)
        for round, tasks in by_round.items():
            self._import(round, tasks)
        return Counter(task.request.round for task in pending)

    def _ensure_project(self, round: str, *, reset_form: bool, recreate: bool) -> None:
        project, rules = self.journal.project(round), self.campaign
        guide = round_guide(round, rules.language, rules.max_share, rules.max_rework)
        if project is not None:
            if reset_form:
                self.server.reset_form(project.project_id, round, guide=guide)
            if self.server.check_project(project.project_id, round, guide=guide):
                return
            if not recreate:
                raise AnnotationError(
                    f"project {project.project_id} of the round {round} is missing on {self.server.url}. Restore the "
                    "server from a backup, or recreate the project with `darkroom annotate sync --recreate`: submitted "
                    "work is kept, unfinished work is handed out again"
                )
            self.journal.forget_project(round)
        created = self.server.create_project(rules.name, round, n_excluded=N_EXCLUDED[round], guide=guide)
        self.journal.set_project(round, RoundProject(created))

    def _recover_tasks(self, round: str) -> None:
        """Store tasks of an interrupted import; of two for one request, delete the younger."""
        project = self._project(round)
        listed = list(self.server.tasks_after(project.project_id, project.last_task))
        if not listed:
            return
        n_excluded = self.journal.n_excluded([task.key for task in listed])
        ours = [task for task in listed if task.key in n_excluded]
        data = {task.key: digest(task.data) for task in ours if task.data}
        self.journal.add_tasks(project.project_id, [(task.key, task.task_id) for task in ours], data=data)
        valid = self.journal.task_ids([task.key for task in ours])
        for task in ours:
            if valid[task.key] != task.task_id and task.n_annotations <= n_excluded[task.key]:
                self.server.delete_task(task.task_id)
        self.journal.set_project(round, project._replace(last_task=max(task.task_id for task in listed)))
        self._set_overlaps(round)

    def _pull_changes(self, round: str) -> None:
        project = self._project(round)
        watermark = project.watermark
        started = self.server.now()  # changes during paging are pulled again next time
        if watermark and started < datetime.fromisoformat(watermark):
            watermark = ""  # the server's clock was set back: what changed since then is before the watermark
        since = datetime.fromisoformat(watermark) - timedelta(seconds=OVERLAP_SECONDS) if watermark else None
        changes = self.server.changed_since(
            project.project_id,
            since.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if since else "",
            n_excluded=FEWEST_EXCLUDED[round],
            last_annotation=self.journal.last_annotation,
        )
        while batch := list(islice(changes, BATCH)):
            with self.journal.transaction():
                for changed in batch:
                    self.journal.add_versions(changed.task_id, changed.annotations, roles=changed.roles)
        self.journal.set_project(round, project._replace(watermark=started.isoformat()))

    def _import(self, round: str, pending: Sequence[PendingTask]) -> None:
        project = self._project(round)
        task_ids = self.server.import_tasks(project.project_id, [task.task for task in pending])
        if len(task_ids) != len(pending):
            sent = f"{len(pending)} tasks were sent to project {project.project_id}"
            raise AnnotationError(f"{sent}, {len(task_ids)} arrived; sync again")
        keys = [task.task["data"]["key"] for task in pending]
        data = {key: digest(task.task["data"]) for key, task in zip(keys, pending, strict=True)}
        self.journal.add_tasks(project.project_id, zip(keys, task_ids, strict=True), data=data)
        self.journal.set_project(round, project._replace(last_task=max(project.last_task, *task_ids)))
        self._set_overlaps(round)

    def _set_overlaps(self, round: str) -> None:
        """Set the overlap of tasks whose number of excluded annotators differs from their project's."""
        unready = self.journal.unready(round)
        overlaps = {task_id: request.overlap for _, task_id, request in unready}
        differing = {task_id: overlap for task_id, overlap in overlaps.items() if overlap != 1 + N_EXCLUDED[round]}
        if differing:
            self.server.set_overlaps(differing)
        self.journal.set_ready(key for key, _, _ in unready)

    def _project(self, round: str) -> RoundProject:
        project = self.journal.project(round)
        assert project is not None, "a round has its project before tasks are exchanged"
        return project


N_EXCLUDED = {name: form.n_excluded for name, form in ROUND_FORMS.items()}
"""Excluded annotators that a round's project expects; a task with another number gets its own overlap."""
FEWEST_EXCLUDED = {**N_EXCLUDED, "rework": 0}
"""A rework after a void submission excludes no one: the record was not rejected by a person."""
