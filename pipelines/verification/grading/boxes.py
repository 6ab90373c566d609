"""Boxes: exactly one, in the frame of the expected one, and how far the two overlap.

``[10, 20, 110, 220]``, ``(10, 20), (110, 220)``, ``x1=10, y1=20, x2=110, y2=220``, ``{"bbox": [10, 20, 110, 220]}``,
``<box>10, 20, 110, 220</box>``, ``left 10, top 20, …``, also in a fence of JSON or in a sentence. Corners, never width
and height. Pixels of the stored original; fractions 0..1 of it only where the expected box is written in fractions.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from darkroom.pipelines.records.geometry import iou
from darkroom.pipelines.verification.grading.answer_text import bare, turning_words
from darkroom.pipelines.verification.grading.sentences import cores
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words

LEAST_OVERLAP = 0.5
"""Intersection over union from which on two boxes are of the same thing (PASCAL VOC's)."""
Corners = tuple[float, float, float, float]

_DATA = read_words(__file__)
_SIDES_NAMED: list[list[str]] = _DATA["sides"]
_SPELLED = [re.compile(spelled) for spelled in _DATA["spelled"]]
_RE = Patterns(_DATA)
_NAMES = frozenset({"bbox", "bbox_2d", "box", "bounding_box"})
_CERTAINTY = ("confidence", "score")
_MAX_CHARS, _MAX_LABEL, _FARTHEST = 400, 60, 2.0**53


def same_box(answer: str, expected: str, question: str = "") -> float | None:
    """The overlap (IoU, 0..1) of two boxes; None where one of them is no box, or they are in different frames."""
    box, expected_box = read_box(answer), read_box(expected)
    if box is None and len(answer) <= _MAX_CHARS:
        box = next((read for core in cores(answer, question) if (read := read_box(core))), None)
    if box is None or expected_box is None:
        return None
    in_fractions, expected_in_fractions = (all(0 <= side <= 1 for side in each) for each in (box, expected_box))
    return iou(box, expected_box) if in_fractions == expected_in_fractions else None


def read_box(text: str) -> Corners | None:
    """The one box that the whole text is, as ``x1, y1, x2, y2``; None where it is none, inverted, or not finite."""
    plain = bare(text)
    label = _RE.labelled.match(plain)
    unlabelled = plain[label.end() :] if label and not turning_words(label[0]) else ""
    return _read(plain) or (_read(unlabelled) if unlabelled else None)


def _read(plain: str) -> Corners | None:
    surrounded = _RE.fenced.match(plain) or _RE.tagged.match(plain)
    inner = surrounded[1].strip() if surrounded else plain
    for spelled in _SPELLED:
        if matched := spelled.match(inner):
            return _checked([float(side) for side in matched.groups()])
    try:
        content = json.loads(inner, object_pairs_hook=_without_repeats, parse_constant=int)
    except (ValueError, RecursionError):  # no JSON, or NaN, which is no int: no box
        content = None
    return _checked(_sides(content))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError(f"a name stands twice in {pairs!r}")
    return dict(pairs)


def _sides(content: Any) -> Sequence[Any]:
    """The four sides in what JSON held: a list, two corners, an object that names them; alone or in a list."""
    if isinstance(content, list) and len(content) == 1:
        content = content[0]
    match content:
        case dict():
            return _named_sides(content)
        case [[x1, y1], [x2, y2]]:
            return (x1, y1, x2, y2)
    return content if isinstance(content, list) else ()


def _named_sides(fields: dict[str, Any]) -> Sequence[Any]:
    label = fields.pop("label", "")
    if not isinstance(label, str) or len(label) > _MAX_LABEL or re.search(r"\d", label) or turning_words(label):
        return ()
    if any(isinstance(fields.pop(name, 0.0), str | list | dict | None) for name in _CERTAINTY):
        return ()
    for names in _SIDES_NAMED:
        if set(fields) == set(names):
            return [fields[side] for side in names]
    sides = next(iter(fields.values())) if len(fields) == 1 and set(fields) <= _NAMES else ()
    if isinstance(sides, dict) and not set(sides) & _NAMES:
        return _named_sides(sides)
    return sides if isinstance(sides, list) else ()


def _checked(sides: Sequence[Any]) -> Corners | None:
    are_numbers = all(isinstance(side, int | float) and not isinstance(side, bool) for side in sides)
    if len(sides) != 4 or not are_numbers or not all(-_FARTHEST < side < _FARTHEST for side in sides):
        return None
    x1, y1, x2, y2 = map(float, sides)
    return (x1, y1, x2, y2) if x1 < x2 and y1 < y2 else None
