r"""Answers in ``\boxed{…}``, with balanced braces; ``\{`` and ``\}`` are letters, as in LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipelines.protocols.base import Malformed, excerpt

_OPENING = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Boxed:
    """One box: where it stands in its text, and what is in it, without blanks around."""

    start: int
    end: int
    answer: str


def write_box(answer: str) -> str:
    """The answer in a box."""
    return rf"\boxed{{{answer}}}"


def fits_a_box(answer: str) -> bool:
    """Whether the answer, boxed, is read again as it is: its braces are balanced and nothing escapes the last one."""
    text = write_box(answer)
    return find_boxes(text) == [Boxed(0, len(text), answer)]


def one_answer(text: str) -> Boxed | Malformed | None:
    """The last box of the text, if all boxes that are not empty hold the same; None where there is no box."""
    boxes = find_boxes(text)
    if isinstance(boxes, Malformed) or not boxes:
        return boxes if boxes else None
    filled = [box for box in boxes if box.answer]
    if not filled:
        return Malformed(rf"the \boxed answer is empty: {excerpt(text)}")
    answers = dict.fromkeys(box.answer for box in filled)
    if len(answers) > 1:
        return Malformed(f"the turn has {len(answers)} different boxed answers: {excerpt(', '.join(answers))}")
    return filled[-1]


def find_boxes(text: str) -> list[Boxed] | Malformed:
    """Every outermost box, in order."""
    boxes: list[Boxed] = []
    end = 0
    while opening := _OPENING.search(text, end):
        closing = _closing_brace(text, opening.end())
        if closing is None:
            return Malformed(rf"a \boxed{{ is never closed: {excerpt(text[opening.start() :])}")
        end = closing + 1
        boxes.append(Boxed(opening.start(), end, text[opening.end() : closing].strip()))
    return boxes


def _closing_brace(text: str, start: int) -> int | None:
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return brace.start()
    return None
