"""The state of a record: where it stands in the rounds, who worked on it, and what they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from darkroom.annotation.label_studio.forms import ROUND_FORMS
from darkroom.annotation.rounds.campaign import Rule
from darkroom.annotation.rounds.journal import Demand
from darkroom.annotation.rounds.submissions import InvalidSubmission, RecordFields
from darkroom.pipelines.records import AnnotationEvent

ROUNDS = ("annotate", "cross_check", "accept", "rework")
WRITING, CHECKING = ("annotate", "rework"), ("cross_check", "accept")
ROLE = {round: ROUND_FORMS[round].roles[0] for round in ROUNDS}
"""Who does a round in every campaign; others may as well (``ROUND_FORMS``)."""
Stage = Literal["waiting", "accepted", "rejected"]


class PlantedErrorCheck(NamedTuple):
    """A checker's result on a planted error."""

    error: str
    person: str
    caught: bool
    at: str = ""
    """When, as in ``AnnotationEvent``."""


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
    """Of the round it waits for, while others are missing."""
    n_verdicts: int = 1
    """That this round asks for, once its task was handed out."""
    sent_back_by: list[int] = field(default_factory=list)
    """Who judged it in the round that sent it back last."""
    invalid: list[InvalidSubmission] = field(default_factory=list)
    skipped_by: list[str] = field(default_factory=list)
    planted_checks: list[PlantedErrorCheck] = field(default_factory=list)
    next_demand: Demand | None = None
    """The next work, if it was not demanded yet."""

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


class Verdict(NamedTuple):
    """One person's; ``version`` is None for a rejection, which has reasons."""

    person_id: int
    version: RecordFields | None
    reasons: tuple[str, ...] = ()


def common_version(verdicts: Sequence[Verdict], rule: Rule) -> RecordFields | None:
    """The version that enough verdicts name; None if there is none."""
    n_enough = len(verdicts) if rule == "unanimity" else len(verdicts) // 2 + 1
    versions = [(_content(verdict.version), verdict.version) for verdict in verdicts if verdict.version is not None]
    counts = Counter(content for content, _ in versions)
    named = [version for content, version in versions if counts[content] >= n_enough]
    return min(named, key=lambda version: version.boxes, default=None)


def why_sent_back(verdicts: Sequence[Verdict], round: str) -> str:
    """For the record's reason, when it is not sent back any more."""
    reasons = dict.fromkeys(reason for verdict in verdicts for reason in verdict.reasons)
    if reasons:
        return f"rejected in {round} for {', '.join(reasons)}"
    return f"rejected in {round}: {len(verdicts)} verdicts fix it in different ways"


def _content(fields: RecordFields) -> Hashable:
    """Boxes as a set: their order is only the order of drawing."""
    return fields.question, fields.answer, fields.category, fields.count, frozenset(fields.boxes)
