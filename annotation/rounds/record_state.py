"""The state of a record: the round it waits for, who worked on it, and what they did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from darkroom.annotation._plugin.darkroom_studio.content import CHECKING
from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.rounds.journal_file import RecordTask, TaskRequest
from darkroom.annotation.rounds.submissions import InvalidSubmission, RecordFields
from darkroom.pipelines.records import AnnotationEvent, PoolImage

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
    """Time, as in ``AnnotationEvent``."""


class Verdict(NamedTuple):
    """One person's verdict; ``fields`` is the version of the record that it names, None for a rejection, which has
    reasons."""

    person_id: int
    fields: RecordFields | None
    reasons: tuple[str, ...] = ()


@dataclass(slots=True)
class RecordState:
    """The state of a record."""

    item_id: str
    stage: Stage = "waiting"
    round: str = "annotate"
    """The round it waits for, or the one that settled it."""
    reason: str = ""
    """Why it was rejected."""
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
        """Verdicts that this round still asks for."""
        return self.n_verdicts - len(self.verdicts)

    @property
    def excluded(self) -> list[int]:
        """Accounts that must not get the next task: authors never judge, one account judges once in an attempt, and
        who sent the record back does not rework it."""
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
