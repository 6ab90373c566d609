"""Calibration of a judge: its votes against people's labels, and the threshold for a wanted precision.

A label says whether the row is good; a score is the judge's share of yes votes. "Positive" is what the judge lets pass.
Intervals are exact binomial ones (Clopper and Pearson, 1934); that of kappa is the agreement's, at the margins found. A
bootstrap of few labels promises more than it holds: where judge and people always agree, it has no width.

Labels are a file with one JSON object per line, as a review queue exports it:

    {"row": "<trajectory_id>", "family": "direct", "check": "consistency", "verdict": "reject",
     "reviewer": "mia", "reason": "The reasoning ends in B, the answer is C."}

``row`` names a row of the workspace: its trajectory_id, or the row of its source (``demo:photo/cat``). A line that has
a ``question`` brings its text itself, for judges that look at no image:

    {"row": "planted/1", "family": "direct", "check": "consistency", "verdict": "reject", "question": "Which letter?",
     "choices": ["A. x", "B. y"], "expected": "B", "thought": "It is y.", "answer": "A"}

Other columns are ignored. Where several lines speak of one row, most of them decide.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from darkroom.pipelines.records import Reject
from darkroom.pipelines.records.reject_reasons import Reason, RowError, reject
from darkroom.pipelines.storage.user_files import field_errors
from darkroom.sandbox.errors import UserError

STAGE = "calibration"


class LabelLine(BaseModel):
    """One line."""

    row: str = Field(min_length=1)
    check: str = Field(min_length=1)
    verdict: Literal["accept", "reject"]
    family: str = ""
    reviewer: str = ""
    reason: str = ""
    question: str | None = None
    choices: list[str] = []
    expected: str = ""
    thought: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """Majority label of one row. ``line`` is the first that labels it, at ``where`` (``file:line``)."""

    is_good: bool
    line: LabelLine
    where: str
    reviewers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """A file's labels for one check. ``n_other`` lines are about other checks."""

    labels: Sequence[Label]
    rejects: Sequence[Reject]
    n_lines: int
    n_other: int


def read_labels(path: Path, check: str) -> Labels:
    """The labels for ``check``; a line that cannot be one is a reject (malformed_row, wrong_type), as is a row on which
    people are divided (disputed). Raises ``UserError``."""
    by_row: dict[tuple[str, str], list[tuple[str, LabelLine]]] = {}
    rejects: list[Reject] = []
    n_lines = n_other = 0
    for where, text in _lines(path):
        n_lines += 1
        try:
            line = _parsed(text)
        except RowError as error:
            rejects.append(label_reject(error, where, text))
            continue
        if line.check != check:
            n_other += 1
        else:
            by_row.setdefault((line.family, line.row), []).append((where, line))
    labels: list[Label] = []
    for lines in by_row.values():
        try:
            labels.append(_settled(lines))
        except RowError as error:
            rejects.append(label_reject(error, lines[0][0], lines[0][1].model_dump_json(), lines[0][1]))
    return Labels(labels, rejects, n_lines, n_other)


def label_reject(error: RowError, where: str, text: str, line: LabelLine | None = None) -> Reject:
    """A line, or what it says of a row, that cannot be used."""
    names = {"source": where.rpartition(":")[0], "source_row": where}
    names |= {"family": line.family, "check": line.check} if line else {}
    return reject(error.reason, error.evidence, stage=STAGE, row={"line": text}, **names)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each with its place; empty ones are none. Bytes that are no UTF-8 become ``?`` and fail as their line's error."""
    try:
        content = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    for number, text in enumerate(content.split("\n"), start=1):
        if text.strip():
            yield f"{path.name}:{number}", text


def _parsed(text: str) -> LabelLine:
    try:
        fields: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RowError(Reason.MALFORMED_ROW, f"no JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RowError(Reason.MALFORMED_ROW, f"a line holds one JSON object; found {type(fields).__name__}")
    try:
        return LabelLine.model_validate(fields)
    except ValidationError as error:
        raise RowError(Reason.WRONG_TYPE, field_errors(error)) from error


def _settled(lines: Sequence[tuple[str, LabelLine]]) -> Label:
    n_good = sum(line.verdict == "accept" for _, line in lines)
    if 2 * n_good == len(lines):
        raise RowError(Reason.DISPUTED, f"{n_good} accept the row and {n_good} reject it")
    where, first = lines[0]
    reviewers = tuple(sorted({line.reviewer for _, line in lines if line.reviewer}))
    return Label(2 * n_good > len(lines), first, where, reviewers)


_LEAST_LABELS = 20
MAJORITY = 0.505
"""The threshold without a target: more than half of up to 99 votes."""

_Mask = NDArray[np.bool_]


class CalibrationError(UserError):
    """Too few labels, or none of one kind: says what was found and what is needed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with the bounds between which the truth lies 95 times of 100; NaN where it is not defined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge at one threshold: a row passes when its score is at least that."""

    threshold: float
    n_labels: int
    n_good: int
    precision: Interval
    """Of the rows that pass, those that people call good."""
    recall: Interval
    """Of the good rows, those that pass."""
    kappa: Interval
    """Cohen's: agreement beyond chance, 1 at best."""
    target_precision: float | None = None
    """What the threshold was chosen for; None where it was given."""
    n_chosen_on: int = 0
    """Labels on which the threshold was chosen: others than those that it is measured on. 0: it was given."""


class Counts(NamedTuple):
    """Rows by whether they pass and whether they are good."""

    good_passed: int
    bad_passed: int
    good_stopped: int
    bad_stopped: int

    def calibration(self, threshold: float) -> Calibration:
        """The measures with their intervals."""
        n_passed, n_good = self.good_passed + self.bad_passed, self.good_passed + self.good_stopped
        precision, recall = _share(self.good_passed, n_passed), _share(self.good_passed, n_good)
        p, q = n_passed / sum(self), n_good / sum(self)
        by_chance = p * q + (1 - p) * (1 - q)
        agreed = _share(self.good_passed + self.bad_stopped, sum(self))
        kappa = Interval(*((share - by_chance) / (1 - by_chance) for share in (agreed.value, agreed.low, agreed.high)))
        return Calibration(threshold, sum(self), n_good, precision=precision, recall=recall, kappa=kappa)


def calibrate(scores: Sequence[float], labels: Sequence[bool], *, threshold: float = MAJORITY) -> Calibration:
    """The judge at a given threshold. Raises ``CalibrationError`` for fewer than 20 labels or labels of one kind."""
    score, label = _checked(scores, labels)
    return _counted(score >= threshold, label).calibration(threshold)


def calibrate_for(scores: Sequence[float], labels: Sequence[bool], *, target_precision: float) -> Calibration:
    """The judge at the lowest threshold whose precision is ``target_precision``: it lets the most rows pass. It is
    chosen on one half of the labels and measured on the other. Raises ``CalibrationError`` when no threshold reaches
    it, naming the best, and for too few labels."""
    score, label = _checked(scores, labels)
    chosen_on = np.random.default_rng(0).permutation(len(label)) < len(label) // 2
    rest = label[~chosen_on]
    if len(label) < 2 * _LEAST_LABELS or rest.all() or not rest.any():
        halves = "a threshold is chosen on one half of the labels and measured on the other"
        mend = f"label at least {2 * _LEAST_LABELS} rows, good and bad ones"
        raise CalibrationError(f"{len(label)} labels, {label.sum()} of them good: {halves}; {mend}")
    tried, good = score[chosen_on], label[chosen_on]
    reached = {float(threshold): _counted(tried >= threshold, good) for threshold in np.unique(tried)}
    precision = {threshold: n.good_passed / (n.good_passed + n.bad_passed) for threshold, n in reached.items()}
    if not (enough := [threshold for threshold, share in precision.items() if share >= target_precision]):
        best = max(precision, key=lambda threshold: precision[threshold])
        problem = f"no threshold reaches a precision of {target_precision:g}"
        mend = "Use more votes, a better judge or prompt, or a lower target"
        raise CalibrationError(f"{problem}; the best is {precision[best]:.3f} at {best:g}. {mend}")
    counts = _counted(score[~chosen_on] >= min(enough), label[~chosen_on])
    return replace(counts.calibration(min(enough)), target_precision=target_precision, n_chosen_on=int(chosen_on.sum()))


def _checked(scores: Sequence[float], labels: Sequence[bool]) -> tuple[NDArray[np.float64], _Mask]:
    if len(scores) != len(labels):
        raise CalibrationError(f"every score needs one label; found {len(scores)} scores and {len(labels)} labels")
    if len(labels) < _LEAST_LABELS:
        raise CalibrationError(f"{len(labels)} labels say nothing; label at least {_LEAST_LABELS} rows")
    score, label = np.asarray(scores, float), np.asarray(labels, bool)
    if label.all() or not label.any():
        kind = "good" if label.all() else "bad"
        raise CalibrationError(f"all {len(label)} labels say {kind}; a judge is measured on both kinds")
    if not np.isfinite(score).all():
        raise CalibrationError("a score is not a finite number")
    order = np.lexsort((label, score))  # the order in which people labelled decides nothing
    return score[order], label[order]


def _counted(passes: _Mask, label: _Mask) -> Counts:
    return Counts(*(int(cell.sum()) for cell in (passes & label, passes & ~label, ~passes & label, ~passes & ~label)))


def _share(part: int, whole: int) -> Interval:
    if not whole:
        return Interval(*[float("nan")] * 3)
    from scipy.special import betaincinv  # no other command needs it

    low = betaincinv(part, whole - part + 1, 0.025) if part else 0.0
    high = betaincinv(part + 1, whole - part, 0.975) if part < whole else 1.0
    return Interval(part / whole, float(low), float(high))
