"""Checks: small functions with a name, a version and typed reasons.

    @check(version=2)
    def executes(case: Case) -> CheckResult:
        ...
        return failed(Flaw.PROGRAM_FAILED, "round 1: NameError", score=0.5)

A check whose verdict comes from a judge is a ``JudgedCheck``.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from darkroom.pipelines.records import Check, Votes
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.judges.judge import Judge, JudgeQuestion
from darkroom.sandbox.errors import UserError


class Flaw(StrEnum):
    """Every reason for which a bundled check says no."""

    # programs
    NO_PROGRAM = "no_program"
    PROGRAM_FAILED = "program_failed"
    HAS_PROGRAM = "has_program"
    NO_IMAGE = "no_image"
    TOO_FEW_ROUNDS = "too_few_rounds"
    TOO_MANY_PROGRAMS = "too_many_programs"
    BROKEN_ROUND = "broken_round"
    CALL_INVALID = "call_invalid"
    MODE_VIOLATED = "mode_violated"
    TOO_MANY_FRAMES = "too_many_frames"
    # what the programs showed
    NOT_A_CROP = "not_a_crop"
    TARGET_CUT = "target_cut"
    SHOWS_NOTHING = "shows_nothing"
    TARGET_SHOWN_TOO_EARLY = "target_shown_too_early"
    CROP_TOO_LARGE = "crop_too_large"
    CROP_TOO_SMALL = "crop_too_small"
    OTHER_OPERATION = "other_operation"
    WRONG_ANGLE = "wrong_angle"
    NOT_UPRIGHT = "not_upright"
    FRAMES_MISSED = "frames_missed"
    OTHER_OBSERVATION = "other_observation"
    FIGURE_BLANK = "figure_blank"
    FIGURE_NOT_DRAWN = "not_drawn"
    ANSWER_PRINTED = "answer_printed"
    NO_LEGIBILITY_GAIN = "no_legibility_gain"
    TEXT_MISREAD = "text_misread"
    INEFFECTIVE = "ineffective"
    UNSUPPORTED = "unsupported"
    NOT_COMPUTED = "not_computed"
    # what was said
    WRONG_ANSWER = "wrong_answer"
    HINT_NUMBER = "hint_number"
    HINT_MENTIONED = "hint_mentioned"
    NOT_EXPLAINED = "not_explained"
    NO_THOUGHT = "no_thought"
    REPETITIVE = "repetitive"
    TOO_LONG = "too_long"
    CLAIM_CONTRADICTED = "claim_contradicted"
    ANSWER_ANTICIPATED = "answer_anticipated"
    INCONSISTENT = "inconsistent"
    ANSWERABLE_BLIND = "answerable_blind"
    ANSWERABLE_WITHOUT_TOOLS = "answerable_without_tools"
    # among others
    DUPLICATE_ROW = "duplicate"
    CONTAMINATED_ROW = "contaminated"
    # samples
    MISMATCHED = "mismatched"
    NEEDS_KNOWLEDGE = "needs_knowledge"


class OwnFlaw(str):
    """A reason that a family of yours adds: ``NOT_MIRRORED = OwnFlaw("not_mirrored")``. Stored and counted like a
    ``Flaw``. Raises ``UserError`` for another spelling than that, and for what ``Flaw`` has."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if not _OWN_FLAW.fullmatch(value):
            raise UserError(f"a flaw is named like 'not_mirrored', in at most 40 characters; found {value[:60]!r}")
        if value in set(Flaw):
            raise UserError(f"the flaw {value!r} is there already: use Flaw.{Flaw(value).name}")
        return str.__new__(cls, value)


_OWN_FLAW = re.compile(r"[a-z][a-z0-9_]{0,39}")
AnyFlaw = Flaw | OwnFlaw


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Verdict of a check on a case: ``score`` is the measured value, ``detail`` the evidence. ``n_trials`` counts the
    votes or answers of which ``score`` is a share."""

    flaw: AnyFlaw | None = None
    score: float | None = None
    detail: str = ""
    n_trials: int = 0


def passed(detail: str = "", *, score: float | None = None) -> CheckResult:
    """The property holds."""
    return CheckResult(None, score, detail)


def failed(flaw: AnyFlaw, detail: str, *, score: float | None = None) -> CheckResult:
    """The property does not hold; ``detail`` says what was found and what was expected."""
    return CheckResult(flaw, score, detail)


def decided(holds: bool, flaw: AnyFlaw, detail: str, *, score: float | None = None, n_trials: int = 0) -> CheckResult:
    """Return ``passed`` or ``failed``, with the same evidence."""
    return CheckResult(None if holds else flaw, score, detail, n_trials)


@dataclass(frozen=True, slots=True)
class MeasuredCheck:
    """A check that needs nothing but the case. An exception is its own error: the row is quarantined."""

    name: str
    version: int
    judge: Callable[[Case], CheckResult]
    description: str

    def __call__(self, case: Case) -> Check:
        return record(self.judge(case), name=self.name, version=self.version)


@dataclass(frozen=True, slots=True)
class JudgedCheck:
    """A check whose verdict is a judge's: ``ask`` puts ``question`` to the judge and reads the votes."""

    name: str
    version: int
    ask: Callable[[Case, Judge], Awaitable[CheckResult]]
    description: str
    question: JudgeQuestion

    async def __call__(self, case: Case, judge: Judge) -> Check:
        return record(await self.ask(case, judge), name=self.name, version=self.version)


CheckFunction = MeasuredCheck | JudgedCheck


def check(*, version: int = 1) -> Callable[[Callable[[Case], CheckResult]], MeasuredCheck]:
    """Makes a function a check: its name is the check's, its docstring's first line what people read."""

    return lambda function: MeasuredCheck(function.__name__, version, function, _first_line(function))


def judged(
    question: JudgeQuestion, *, version: int = 1
) -> Callable[[Callable[[Case, Judge], Awaitable[CheckResult]]], JudgedCheck]:
    """The same for ``async (case, judge) -> CheckResult``, which asks ``question``."""

    return lambda function: JudgedCheck(function.__name__, version, function, _first_line(function), question)


def record(verdict: CheckResult, *, name: str, version: int) -> Check:
    """A verdict as the trajectory keeps it."""
    reason = "" if verdict.flaw is None else str(verdict.flaw)
    return Check(name, not reason, verdict.score, verdict.detail, reason, version, verdict.n_trials)


def _first_line(function: Callable[..., object]) -> str:
    return (function.__doc__ or function.__name__).strip().splitlines()[0]


def by_votes(votes: Votes, flaw: AnyFlaw) -> CheckResult:
    """Passed when the judge says yes, by its calibration or by majority; ``score`` is the share of yes votes. Raises
    ``RowError`` (no_vote) where no answer is one: it says nothing about the row."""
    if votes.n_invalid == votes.n:
        raise RowError(Reason.NO_VOTE, f"none of {votes.n} answers is a vote; {votes}")
    return decided(votes.says_yes, flaw, str(votes), score=votes.share, n_trials=votes.n)
