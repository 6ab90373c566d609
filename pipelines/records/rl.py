"""Measurements of a sample on its way to becoming an RL prompt, votes among them, and the prompt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from darkroom.pipelines.records.samples import Sample
from darkroom.pipelines.records.trajectories import Check, Usage

Majority = Literal["yes", "no", "tie"]
NOT_STORED = "not_stored"
"""In the metadata of a field that is no column of tables."""


def majority(n_yes: int, n_no: int) -> Majority:
    """The larger side, or ``tie``."""
    if n_yes == n_no:
        return "tie"
    return "yes" if n_yes > n_no else "no"


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes: independent answers of one model to one question (``pipelines/models/self_consistency.py``). ``ballots``:
    yes, no, or None for no answer, by seed. ``n_wanted``: how many were to be asked for, unless the result was certain
    before. ``reasons``: what each said, as far as it did. ``threshold``: the share of yes from which on a calibrated
    judge says yes."""

    judge: str
    ballots: tuple[bool | None, ...]
    n_wanted: int
    reasons: tuple[str, ...] = ()
    usage: Usage = Usage()
    threshold: float | None = None

    @property
    def n(self) -> int:
        """All ballots, the invalid ones included."""
        return len(self.ballots)

    @property
    def n_yes(self) -> int:
        return self.ballots.count(True)

    @property
    def n_no(self) -> int:
        return self.ballots.count(False)

    @property
    def n_invalid(self) -> int:
        return self.ballots.count(None)

    @property
    def n_saved(self) -> int:
        """Ballots that did not have to be asked for."""
        return self.n_wanted - self.n

    @property
    def share(self) -> float:
        return self.n_yes / self.n if self.n else 0.0

    @property
    def says_yes(self) -> bool:
        """True if a filter lets the row pass: by the threshold, or without one by the majority of all ballots."""
        return 2 * self.n_yes > self.n if self.threshold is None else self.share >= self.threshold

    @property
    def majority(self) -> Majority:
        """Majority of the valid ballots; a tie is a value of its own."""
        return majority(self.n_yes, self.n_no)

    @property
    def agreement(self) -> float:
        """Share of the valid ballots on the larger side; 1.0 where they all agree."""
        valid = self.n_yes + self.n_no
        return max(self.n_yes, self.n_no) / valid if valid else 0.0

    def __str__(self) -> str:
        first_reason = next((reason for reason in self.reasons if reason), "")
        return f"{self.judge}: {self.n_yes} of {self.n} say yes{f'; {first_reason}' if first_reason else ''}"


GraderKind = Literal["choice", "number", "text", "list", "maths", "box", "judged"]


@dataclass(frozen=True, slots=True)
class Grader:
    """Grading of answers to one question: the rule, and what it needs to know."""

    kind: GraderKind
    tolerance: float = 0.0
    """``number``: how far off an answer may be, as a share of the right one. ``box``: the least overlap (IoU)."""
    unit: str = ""
    """``number``: the unit of an answer that names none."""
    is_ordered: bool = False
    """``list``: whether the order counts."""
    accepted: tuple[str, ...] | None = field(default=None, metadata={NOT_STORED: True})
    """Other right answers, each by the rule that fits it; None: the details' (the column ``accepted`` in files)."""


def shipped_grader(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a shipped row's grader, with the answers that it accepts besides."""
    return {**row["grader"], "accepted": row.get("accepted")}


@dataclass(frozen=True, slots=True)
class RLCandidate:
    """A sample that may become an RL prompt: its answers can be graded, and every check of it passed."""

    sample_id: str
    grader: Grader
    checks: tuple[Check, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class _Voted:
    sample_id: str
    votes: Votes

    @property
    def usage(self) -> Usage:
        """Cost of all votes."""
        return self.votes.usage


@dataclass(frozen=True, slots=True)
class CheckedLabel(_Voted):
    """A candidate whose answer is to be trusted. A ballot says yes where a judge's own answer is the label."""

    verified_by: str = ""
    """Who settled it, where judge and label disagreed."""


@dataclass(frozen=True, slots=True)
class PassRate(_Voted):
    """Pass rate of the model to be trained; a ballot says yes where it answers rightly."""

    never_solved: bool


@dataclass(frozen=True, slots=True)
class ToolNecessity:
    """Accuracy with tools forced and with tools forbidden (Look Less, Reason More, eq. 4). A prior only: what a model
    needs changes while it is trained, and training estimates it again."""

    sample_id: str
    forced: Votes
    forbidden: Votes

    @property
    def prior(self) -> float:
        """Accuracy with the tools less accuracy without, -1..1."""
        return self.forced.share - self.forbidden.share

    @property
    def usage(self) -> Usage:
        """Cost of both measurements."""
        return self.forced.usage + self.forbidden.usage


@dataclass(frozen=True, slots=True)
class SuitabilityVotes(_Voted):
    """Votes on whether drawing would help to solve a problem (FIGR, §3.3 and appendix B.1)."""


@dataclass(frozen=True, slots=True)
class SuitabilityLabel:
    """Result of the votes. ``suitable`` resolves a tie as the settings say; ``majority`` keeps that it was one."""

    sample_id: str
    suitable: bool
    majority: Majority
    n_yes: int
    n_no: int
    n_invalid: int
    judge: str


Difficulty = Literal["unsolved", "hard", "medium", "easy", "unknown"]


@dataclass(frozen=True, slots=True)
class RLRow:
    """One RL row: a question that is worth a rollout, with all that its rewards need to know."""

    sample: Sample
    grader: Grader
    origin: Literal["public", "annotated"]
    difficulty: Difficulty
    pass_rate: PassRate | None = None
    necessity: ToolNecessity | None = None
    suitability: SuitabilityLabel | None = None
