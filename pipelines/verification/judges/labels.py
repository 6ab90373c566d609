"""What people said of judged rows: one JSON object per line, as a review queue exports it.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from darkroom.pipelines.records import Reject
from darkroom.pipelines.records.reject_reasons import Reason, RowError, reject
from darkroom.sandbox.errors import UserError

STAGE = "calibration"


class LabelsUnreadable(UserError):
    """The file cannot be read."""


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
    """What most people said of one row. ``line`` is the first that spoke of it, at ``where`` (``file:line``)."""

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
    people are divided (disputed). Raises ``LabelsUnreadable``."""
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
    family, check = (line.family, line.check) if line else ("", "")
    source, _, number = where.rpartition(":")
    return reject(
        error.reason,
        error.evidence,
        stage=STAGE,
        row={"line": text},
        family=family,
        check=check,
        source=source,
        source_row=f"{source}:{number}",
    )


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each with its place; empty ones are none. Bytes that are no UTF-8 become ``?`` and fail as their line's error."""
    try:
        content = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise LabelsUnreadable(f"{path}: {error.strerror or error}") from error
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
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise RowError(Reason.WRONG_TYPE, problems) from error


def _settled(lines: Sequence[tuple[str, LabelLine]]) -> Label:
    n_good = sum(line.verdict == "accept" for _, line in lines)
    if 2 * n_good == len(lines):
        raise RowError(Reason.DISPUTED, f"{n_good} accept the row and {n_good} reject it")
    where, first = lines[0]
    reviewers = tuple(sorted({line.reviewer for _, line in lines if line.reviewer}))
    return Label(2 * n_good > len(lines), first, where, reviewers)
