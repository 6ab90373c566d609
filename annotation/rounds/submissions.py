"""Submissions of a record's tasks, read and validated again, whatever a page or server checked; states of records.

A submission is read by the terms of its task, with the gate's own function: what the gate accepts is accepted here. Of
each annotation one version is read (``used_version``).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from darkroom.annotation._plugin.darkroom_studio.content import CHECKING, Content, read_content
from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.rounds.campaign import PreAnnotationUse, Terms
from darkroom.annotation.rounds.journal_file import AnnotationVersion, RecordTask, TaskRequest
from darkroom.pipelines.records import AnnotationEvent, FieldChange, PoolImage, TruthBox
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError, storable


@dataclass(frozen=True, slots=True)
class RecordFields:
    """The content of a record."""

    question: str
    answer: str
    category: str
    count: int | None
    boxes: tuple[Box, ...]

    @property
    def columns(self) -> dict[str, Any]:
        boxes = tuple(TruthBox("target", *box) for box in self.boxes)
        return {name: getattr(self, name) for name in self.__slots__} | {"boxes": boxes}

    @property
    def content(self) -> tuple[Hashable, ...]:
        """The fields to compare: boxes are a set, their order is only the order of drawing."""
        return self.question, self.answer, self.category, self.count, frozenset(self.boxes)

    def changes(self, before: RecordFields) -> tuple[FieldChange, ...]:
        pairs = zip(self.__slots__, before.content, self.content, strict=True)
        names = [name for name, old, new in pairs if old != new]
        return tuple(FieldChange(name, _text(getattr(before, name)), _text(getattr(self, name))) for name in names)


@dataclass(frozen=True, slots=True)
class Submission:
    """One person's work on one task."""

    person_id: int
    fields: RecordFields
    """The record; empty but for its boxes if the submission only accepts or rejects one."""
    blind_answer: str
    comment: str
    verdict: str
    reasons: tuple[str, ...]


class ReadAnnotation(NamedTuple):
    """An annotation: the version of it that is used, the latest one, and what was read from the former."""

    version: AnnotationVersion
    latest: AnnotationVersion
    submission: Submission | RowError


class ReadTask(NamedTuple):
    """A task with its terms and the annotations of it; oldest annotation first."""

    task: RecordTask
    terms: Terms
    annotations: list[ReadAnnotation]


class Accepted(NamedTuple):
    """A submission that counts, or a void one: without a submission, with the reason."""

    version: AnnotationVersion
    submission: Submission | None
    evidence: str = ""


class AcceptedSubmissions(NamedTuple):
    """The submissions of a task that count."""

    accepted: list[Accepted]
    """Valid ones; once everybody has answered, also a void one for each that is missing."""
    is_complete: bool
    """No more people can answer the task on the server."""


class InvalidSubmission(NamedTuple):
    """A submission that is not used, and why."""

    round: str
    person: str
    reason: Reason
    evidence: str
    project_id: int
    task_id: int
    annotation_id: int


@dataclass(frozen=True, slots=True)
class SubmissionReader:
    """Reader of the submissions of one campaign's tasks."""

    terms: Mapping[str, Terms]
    """By digest."""
    default: Terms
    """For tasks without frozen terms."""

    def read(self, tasks: Sequence[RecordTask], size: tuple[int, int]) -> list[ReadTask]:
        """Read all tasks of one item; ``size`` is (width, height) of its image."""
        frozen = frozen_bases(tasks)
        read = []
        for task in tasks:
            terms = self.terms.get(task.terms, self.default)
            gate = terms.gate(task.request.round, size)
            annotations = []
            for versions in task.annotations:
                version = used_version(task, versions, frozen)
                submission: Submission | RowError
                try:
                    submission = read_submission(version.raw, gate)
                except RowError as error:
                    submission = error
                annotations.append(ReadAnnotation(version, versions[-1], submission))
            read.append(ReadTask(task, terms, annotations))
        return read


def read_submission(raw: Mapping[str, Any], gate: Mapping[str, Any]) -> Submission:
    """Raises ``RowError`` with a typed reason for a broken submission, or one that breaks the rules of its task."""
    person_id, content = signer_of(raw), read_content(raw.get("result"), gate)
    require_no_problems(content)
    texts = {name: storable(text) for name, text in content.texts.items()}
    boxes = tuple(Box(*corners) for corners in content.boxes)
    fields = RecordFields(texts["question"], texts["answer"], content.category, content.count, boxes)
    reasons = tuple(map(storable, content.reasons))
    return Submission(person_id, fields, texts["blind_answer"], texts["comment"], content.verdict, reasons)


def require_no_problems(content: Content) -> None:
    """Raises ``RowError`` with the reason of the first problem."""
    if content.problems:
        raise RowError(Reason(content.problems[0].reason), " ".join(problem.text() for problem in content.problems))


def signer_of(raw: Mapping[str, Any]) -> int:
    """The account that signed a submission; one entered by another account is forged."""
    signed, edited = raw.get("completed_by"), raw.get("updated_by")
    if edited is not None and edited != signed:
        raise RowError(Reason.FORGED_SUBMISSION, f"signed by account {signed}, entered by account {edited}")
    if not isinstance(signed, int):
        raise RowError(Reason.BROKEN_SUBMISSION, f"signed by {signed!r}, which is no account")
    return signed


def worked_seconds(raw: Mapping[str, Any]) -> float | None:
    """The server's time of a submission; earlier versions took what the page sent: None for what cannot be."""
    match raw.get("lead_time"):
        case int() | float() as seconds if 0 <= seconds <= 86_400:
            return float(seconds)
    return None


def frozen_bases(tasks: Iterable[RecordTask]) -> dict[int, str]:
    """The versions that later rounds build on, by annotation."""
    return {annotation: version for task in tasks for annotation, version in task.request.frozen.items()}


def used_version(
    task: RecordTask, versions: Sequence[AnnotationVersion], frozen: Mapping[int, str]
) -> AnnotationVersion:
    """The base of a later round, else the latest version; of a planted error's check the first. ``frozen``: digests."""
    if task.request.planted_error:
        return versions[0]
    base = frozen.get(versions[0].annotation_id)
    return next((version for version in versions if version.digest == base), versions[-1])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


ROUNDS = ("annotate", "cross_check", "accept", "rework")
ROLE = {round: ROUND_FORMS[round].roles[0] for round in ROUNDS}
"""The role that does a round in every campaign; others may as well (``ROUND_FORMS``)."""
Stage = Literal["waiting", "accepted", "rejected"]


class PlantedErrorCheck(NamedTuple):
    """A checker's result on a planted error."""

    error: str
    person: str
    caught: bool
    at: str = ""


class Verdict(NamedTuple):
    """One person's verdict; ``fields`` is the version that it names, None for a rejection, which has reasons."""

    person_id: int
    fields: RecordFields | None
    reasons: tuple[str, ...] = ()


@dataclass(slots=True)
class RecordState:
    """The state of a record."""

    item_id: str
    stage: Stage = "waiting"
    pre_annotation: PreAnnotationUse = ""
    round: str = "annotate"
    """The round it waits for, or the one that settled it."""
    reason: str = ""
    fields: RecordFields | None = None
    attempt: int = 0
    history: list[AnnotationEvent] = field(default_factory=list)
    authors: list[int] = field(default_factory=list)
    judges: list[int] = field(default_factory=list)
    """Who checked or accepted in this attempt."""
    verdicts: list[Verdict] = field(default_factory=list)
    """Verdicts in the round it waits for, while others are missing."""
    n_verdicts: int = 1
    """Verdicts that this round asks for, once its task was handed out."""
    sent_back_by: list[int] = field(default_factory=list)
    """Who judged it in the round that sent it back last."""
    invalid: list[InvalidSubmission] = field(default_factory=list)
    skipped_by: list[str] = field(default_factory=list)
    planted_checks: list[PlantedErrorCheck] = field(default_factory=list)
    next_request: TaskRequest | None = None
    """The next request, if it was not stored yet."""

    @property
    def n_missing(self) -> int:
        return self.n_verdicts - len(self.verdicts)

    @property
    def excluded(self) -> list[int]:
        """Authors never judge, one account judges once in an attempt, who sent it back does not rework it."""
        if self.round in CHECKING:
            return list(dict.fromkeys([*self.authors, *self.judges]))
        return self.sent_back_by if self.round == "rework" else []


class Record(NamedTuple):
    """An image of the pool, its tasks and the state of its record."""

    item: PoolImage
    tasks: list[RecordTask]
    state: RecordState

    @property
    def current_task(self) -> RecordTask:
        """The task of the round that the record waits for, once it is requested."""
        return max(
            (t for t in self.tasks if not t.request.planted_error and t.request.round == self.state.round),
            key=lambda task: (task.request.attempt, task.request.serial),
        )
