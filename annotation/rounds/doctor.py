"""Comparison of a campaign's journal with the server, and its repair. Unfinished work that the server lost is handed
out again by the next sync, under the terms of its request; submissions are in the journal and are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from darkroom.annotation import FormChanged
from darkroom.annotation.label_studio.protocol import TaskServer
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.journal_file import RoundProject
from darkroom.pipelines.records.digest import digest


@dataclass(slots=True)
class RoundReport:
    """The differences of one round's project, by the numbers of tasks."""

    round: str
    project: RoundProject
    project_is_missing: bool = False
    form_error: str = ""
    unfinished_missing: list[int] = field(default_factory=list)
    finished_missing: list[int] = field(default_factory=list)
    foreign: list[int] = field(default_factory=list)
    """Tasks of no request, or a second one for it."""
    changed: list[int] = field(default_factory=list)
    """Tasks with other data than were handed out."""
    wrong_overlap: dict[int, int] = field(default_factory=dict)
    """The number of annotations that should complete each task."""
    unpulled: list[int] = field(default_factory=list)
    """Tasks with submissions that the journal has not."""
    unheld: list[int] = field(default_factory=list)
    """Tasks that are locked by people who do not work on them."""

    def sentences(self) -> Iterator[str]:
        project = f"{self.round}, project {self.project.project_id}"
        if self.project_is_missing:
            yield f"{project}: the project is missing; --repair creates it and hands unfinished work out again"
            return
        if self.form_error:
            yield f"{project}: {self.form_error}"
        for tasks, what in (
            (self.unfinished_missing, "missing, unfinished; --repair hands {it} out again"),
            (self.finished_missing, "missing, finished; what was submitted is kept, nothing to do"),
            (self.changed, "with other data than were handed out; --repair replaces what nobody has answered"),
            (list(self.wrong_overlap), "with another number of annotations than asked for; --repair sets it"),
            (self.unpulled, "with submissions that were not received yet; the next sync or --repair receives them"),
            (self.unheld, "locked by people who do not work on {it}; the next sync or --repair releases {it}"),
            (self.foreign, "that this campaign did not hand out; remove {it} in Label Studio if nobody needs {it}"),
        ):
            if tasks:
                noun, it = ("task", "it") if len(tasks) == 1 else ("tasks", "them")
                listed = ", ".join([*map(str, tasks[:10]), *(["…"] if len(tasks) > 10 else [])])
                yield f"{project}: {len(tasks):,} {noun} {what.format(it=it)} ({listed})"


@dataclass(slots=True)
class DoctorReport:
    """All differences between the journal and the server."""

    rounds: list[RoundReport]
    people: list[str]

    @property
    def sentences(self) -> list[str]:
        return [sentence for report in self.rounds for sentence in report.sentences()] + self.people


@dataclass(frozen=True, slots=True)
class Doctor:
    """One campaign's journal and its server."""

    journal: Journal
    server: TaskServer

    def examine(self) -> DoctorReport:
        """Changes nothing. Raises ``AnnotationError`` when the server does not answer."""
        projects = [(round, self.journal.project(round)) for round in self.journal.rounds()]
        return DoctorReport([self._round(round, project) for round, project in projects if project], self._people())

    def repair(self, report: DoctorReport) -> None:
        """Let the next sync hand out and receive what is missing. Can be interrupted and repeated."""
        with self.journal.lock():
            for each in report.rounds:
                if each.project_is_missing:
                    self.journal.forget_project(each.round)
                    continue
                stored = {task.task_id: task for task in self.journal.tasks(each.project.project_id)}
                for task_id in each.changed:
                    if not stored[task_id].n_submissions:  # a submission was made on the changed data: people decide
                        self.server.delete_task(task_id)
                        self.journal.retire_tasks([task_id])
                self.journal.retire_tasks(each.unfinished_missing)
                self.journal.set_lost(each.finished_missing)
                self.server.unheld_locks(each.project.project_id, release=True)
                if each.wrong_overlap:
                    self.server.set_overlaps(each.wrong_overlap)
                if each.unpulled:
                    self.journal.set_project(each.round, each.project._replace(watermark=""))

    def _round(self, round: str, project: RoundProject) -> RoundReport:
        report = RoundReport(round, project)
        try:
            report.project_is_missing = not self.server.check_project(project.project_id, round)
        except FormChanged as error:
            report.form_error = str(error)
        if report.project_is_missing:
            return report
        listed = {task.task_id: task for task in self.server.tasks_after(project.project_id, 0)}
        for task in self.journal.tasks(project.project_id):
            listing = listed.pop(task.task_id, None)
            if listing is None:
                (report.finished_missing if task.is_finished else report.unfinished_missing).append(task.task_id)
                continue
            if task.data and task.data != digest(listing.data):
                report.changed.append(task.task_id)
            if listing.overlap and listing.overlap != task.overlap:
                report.wrong_overlap[task.task_id] = task.overlap
            if listing.n_annotations >= task.overlap and not task.is_finished:
                report.unpulled.append(task.task_id)
        report.foreign = sorted(listed)
        report.unheld = self.server.unheld_locks(project.project_id, release=False)
        return report

    def _people(self) -> list[str]:
        stored, people = self.journal.people(), {person.person_id: person for person in self.server.people()}
        deleted = [person.email for number, person in stored.items() if number not in people]
        both = [(stored[number].email, person.email) for number, person in people.items() if number in stored]
        renamed = [f"{before} is now {after}" for before, after in both if before != after]
        unknown = [person.email for person in people.values() if not person.role]
        return [
            f"people: {', '.join(emails)}: {what}"
            for emails, what in (
                (deleted, "the account is missing on the server; what they submitted is kept"),
                (renamed, "the address was changed"),
                (unknown, "no role, so no task; give them one with `darkroom annotate users add`"),
            )
            if emails
        ]
