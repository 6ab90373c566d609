"""Reading and validation of a submission by its task's rules: one function for the server's gate and for the sync.

The rules are the task's own ``data["gate"]``, frozen when the task was handed out:

    {"kind": "annotate", "max_share": 0.05, "width": 4000, "height": 3000, "categories": ["ocr", …], "reasons": […],
     "accept_needs_box": true}

``kind`` is the round. Tasks of older versions lack the size of the image and the options; what needs those is not
checked. A queue's rules are ``{"kind": "verify", "field": "match", "choices": ["match", …], "reasons": []}``.
``width`` and ``height`` are the original's, also where people see a reduced view of it (``shown_size``): percent are
the same of both.
This module imports nothing but its neighbour, since Label Studio's environment has nothing of Darkroom's. Boxes are in
percent 0..100 of the image in a submission, and in pixels ``(x1, y1, x2, y2)`` once read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .languages import Phrase, translated

WRITING, CHECKING = ("annotate", "rework"), ("cross_check", "accept")
VERDICTS = ("accept", "fix", "reject")
TEXTS = ("question", "answer", "blind_answer", "comment")
FIELDS = (*TEXTS, "box", "category", "count", "verdict", "reason")
LARGEST_COUNT = 10**9
_FARTHEST = 1e6
"""Percent; what lies farther out is no rectangle, and might not be finite."""
_SLACK = 1e-6
"""Of the longer side: 59.8828125 % of 2,560 is 1,533, not 1,532.9999."""
_UNKNOWN_SIDE = 10_000
LARGEST_SHOWN = 50_000_000
"""Pixels; a larger image is shown as a reduced view. Submissions are judged by it: it must not change."""
_LONGEST_SHOWN = 32_767
"""Pixels of a view's longer side: browsers and JPEG have limits near it."""
SIZE = "**This image has {} × {} pixels.**"
LIMIT = (
    " No box may cover more than {} % of it: **{} pixels**, a square of {} × {}. The line at the bottom says how large "
    "yours is."
)
Corners = tuple[int, int, int, int]


class Problem(NamedTuple):
    """An error of a submission: the reject reason, and a sentence for the annotator with the values in it."""

    reason: str
    sentence: str
    values: tuple[Any, ...] = ()

    def text(self, language: str = "en") -> str:
        return translated(self.sentence, language, *self.values)


@dataclass(slots=True)
class Content:
    """The content of a submission by field, and everything that is wrong with it."""

    texts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(TEXTS, ""))
    category: str = ""
    count: int | None = None
    boxes: list[Corners] = field(default_factory=list)
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    def add(self, sentence: str, *values: Any, reason: str = "breaks_rules") -> None:
        self.problems.append(Problem(reason, sentence, values))


def find_errors(results: Any, rules: Mapping[str, Any], language: str = "en") -> list[str]:
    """Error messages for the annotator; empty for a valid submission, and for another team's task."""
    is_round = rules.get("kind") in (*WRITING, *CHECKING)
    if not is_round and "choices" not in rules:
        return []
    content = read_content(results, rules) if is_round else read_verdict(results, rules)
    return [problem.text(language) for problem in content.problems]


def read_content(results: Any, rules: Mapping[str, Any]) -> Content:
    """A submission of a round; ``results`` is Label Studio's list."""
    content = Content()
    by_field = _by_field(results, FIELDS, content)
    for name in TEXTS:
        content.texts[name] = _text(name, by_field.get(name, ()), content)
    content.category = _choice("category", by_field.get("category", ()), content)
    content.verdict = _choice("verdict", by_field.get("verdict", ()), content)
    content.reasons = _choices("reason", by_field.get("reason", ()), content)
    content.count = _count(by_field.get("count", ()), content)
    for number, entry in enumerate(by_field.get("box", ()), 1):
        _read_box(number, entry, rules, content)
    if not any(problem.reason == "broken_submission" for problem in content.problems):
        _check_rules(content, rules, filled=by_field)
    return content


def read_verdict(results: Any, rules: Mapping[str, Any]) -> Content:
    """A verdict of a queue: one of ``choices``; a rejection has reasons."""
    content = Content()
    by_field = _by_field(results, (rules["field"], "reason", "comment"), content)
    chosen = _choices(rules["field"], by_field.get(rules["field"], ()), content)
    content.verdict = chosen[0] if len(chosen) == 1 else ""
    content.reasons = _choices("reason", by_field.get("reason", ()), content)
    content.texts["comment"] = _text("comment", by_field.get("comment", ()), content)
    if not content.problems and content.verdict not in rules["choices"]:
        content.add("Choose one: {}.", ", ".join(rules["choices"]))
    if content.verdict == "reject":
        _check_reasons(content, rules["reasons"])
    return content


def _by_field(results: Any, fields: Collection[str], content: Content) -> dict[str, list[Mapping[str, Any]]]:
    """The results of every field that was filled in; their order is not fixed."""
    by_field: dict[str, list[Mapping[str, Any]]] = {}
    if not isinstance(results, list):
        content.add("The result is {}, not a list.", type(results).__name__, reason="broken_submission")
        return by_field
    for entry in results:
        if isinstance(entry, dict) and entry.get("type") == "relation":
            content.add("Remove the relation between boxes: records have none.", reason="broken_submission")
        elif not isinstance(entry, dict) or not isinstance(entry.get("value"), dict):
            content.add("A result is no object with a value: {}.", _shown(entry), reason="broken_submission")
        elif entry.get("from_name") not in fields:
            content.add("The form has no field {}.", _shown(entry.get("from_name")), reason="broken_submission")
        else:
            by_field.setdefault(entry["from_name"], []).append(entry)
    return by_field


def _text(name: str, entries: Sequence[Mapping[str, Any]], content: Content) -> str:
    parts = [part for entry in entries for part in _strings(name, entry["value"].get("text"), content)]
    return "\n".join(parts).strip()


def _choices(name: str, entries: Sequence[Mapping[str, Any]], content: Content) -> tuple[str, ...]:
    return tuple(part for entry in entries for part in _strings(name, entry["value"].get("choices"), content))


def _choice(name: str, entries: Sequence[Mapping[str, Any]], content: Content) -> str:
    chosen = _choices(name, entries, content)
    if len(chosen) > 1:
        content.add("Choose one {}, not several choices: {}.", name, _shown(list(chosen)), reason="broken_submission")
    return chosen[0] if chosen else ""


def _strings(name: str, value: Any, content: Content) -> list[str]:
    """A list of strings, or one; empty for nothing, a problem for anything else."""
    if value is None:
        return []
    parts = [value] if isinstance(value, str) else value
    if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
        return parts
    content.add("The {} is {}, not a text.", name.replace("_", " "), _shown(value), reason="broken_submission")
    return []


def _count(entries: Sequence[Mapping[str, Any]], content: Content) -> int | None:
    if not entries:
        return None
    number = entries[0]["value"].get("number")
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number <= LARGEST_COUNT
    if is_number and number == int(number):
        return int(number)
    content.add("The count is {}, not a whole number from 0 on.", _shown(number))
    return None


def _read_box(number: int, entry: Mapping[str, Any], rules: Mapping[str, Any], content: Content) -> None:
    value, width, height = entry["value"], rules.get("width"), rules.get("height")
    size_shown = shown_size(width, height) if width and height else (width, height)
    drawn_on = (entry.get("original_width") or size_shown[0], entry.get("original_height") or size_shown[1])
    if width and drawn_on != size_shown:
        size, needed = "x".join(map(_shown, drawn_on)), f"{size_shown[0]}x{size_shown[1]}"
        content.add("Box {} was drawn on {} pixels; the image has {}.", number, size, needed, reason="foreign_frame")
    elif entry.get("image_rotation"):
        turned = _shown(entry["image_rotation"])
        content.add("Box {} was drawn on the image turned by {} degrees.", number, turned, reason="foreign_frame")
    try:
        box, share = to_corners(value, width or _UNKNOWN_SIDE, height or _UNKNOWN_SIDE), share_of(value)
    except ValueError as error:
        content.add("Box {} {}.", number, Phrase(error))
        return
    content.boxes.append(box)
    limit = rules.get("max_share", 1)
    if share > limit * (1 + 1e-9):
        found, most = f"{100 * share:.2f}", f"{100 * limit:g}"
        content.add("Box {} covers {} % of the image; the limit is {} %.", number, found, most)


def _check_rules(content: Content, rules: Mapping[str, Any], *, filled: Collection[str]) -> None:
    kind = rules["kind"]
    if kind in CHECKING and content.verdict not in VERDICTS:
        content.add("Choose a verdict: accept, fix, reject.")
    if kind == "cross_check" and not is_visible(content.texts["blind_answer"]):
        content.add("Your own answer is missing: answer the question before you judge the record.")
    if kind in CHECKING and content.verdict == "reject":
        _check_reasons(content, rules.get("reasons"))
    if kind in WRITING or content.verdict == "fix":
        _check_record(content, rules, filled)
    with_boxes = ("accept", "fix") if rules.get("accept_needs_box") else ("fix",)
    if (kind in WRITING or content.verdict in with_boxes) and "box" not in filled:
        content.add("Draw at least one box around the target object.")


def _check_reasons(content: Content, options: Any) -> None:
    if not content.reasons:
        content.add("Say why you reject it: choose at least one reason.")
    elif options and not set(content.reasons) <= set(options):
        content.add("Choose reasons of the form; found {}.", _shown(list(content.reasons)))


def _check_record(content: Content, rules: Mapping[str, Any], filled: Collection[str]) -> None:
    for name in ("question", "answer"):
        if not is_visible(content.texts[name]):
            content.add(f"The {name} is empty.")
    options = rules.get("categories")
    if not content.category:
        content.add("Choose a category.")
    elif options and content.category not in options:
        content.add("The category is {}, not one of {}.", _shown(content.category), ", ".join(options))
    if content.category != "quantity":
        return
    answer = content.texts["answer"]
    if "count" not in filled:
        content.add("The count is missing: enter how many objects there are.")
    elif content.count is not None and answer.isdecimal() and (len(answer) > 100 or int(answer) != content.count):
        content.add("The answer says {}, the count {}.", _shown(answer), content.count)


def is_visible(text: str) -> bool:
    return any(letter.isprintable() and not letter.isspace() for letter in text)


def shown_size(width: int, height: int) -> tuple[int, int]:
    """The size in which people see an image: its own, or that of its view, which covers the same area."""
    if width * height <= LARGEST_SHOWN:
        return width, height
    across, down = math.isqrt(LARGEST_SHOWN * width // height), math.isqrt(LARGEST_SHOWN * height // width)
    if max(across, down) > _LONGEST_SHOWN:
        longest = max(width, height)
        across, down = _LONGEST_SHOWN * width // longest, _LONGEST_SHOWN * height // longest
    return max(1, across), max(1, down)


def rules_shown(width: int, height: int, max_share: float, language: str = "en") -> str:
    """The size rule in pixels of one image, in Markdown."""
    pixels = int(max_share * width * height)
    side, view = f"{math.isqrt(pixels):,}", shown_size(width, height)
    sizes = [f"{number:,}" for number in (width, height, *view)]
    reduced = translated(" You see it reduced to {} × {}.", language, *sizes[2:]) if view[0] != width else ""
    limits = (f"{100 * max_share:g}", f"{pixels:,}", side, side)
    return translated(SIZE, language, *sizes[:2]) + reduced + translated(LIMIT, language, *limits)


def to_corners(value: Mapping[str, Any], original_width: int, original_height: int) -> Corners:
    """The smallest box of whole pixels that covers the rectangle, clipped to the image. Raises ``ValueError`` for a
    rectangle that is rotated, empty or outside of the image, and for non-finite numbers."""
    if original_width <= 0 or original_height <= 0:
        raise ValueError(f"expected a positive image size; found {original_width}x{original_height}")
    if value.get("rotation"):
        raise ValueError("is rotated; boxes must be upright")
    x, y, width, height = (_percent(value, name) for name in ("x", "y", "width", "height"))
    if width <= 0 or height <= 0:
        raise ValueError("is empty")
    x1, x2 = _whole(x, x + width, original_width)
    y1, y2 = _whole(y, y + height, original_height)
    if x1 >= x2 or y1 >= y2:
        raise ValueError("lies outside of the image")
    return x1, y1, x2, y2


def share_of(value: Mapping[str, Any]) -> float:
    """The rectangle's share of the image's area, 0..1, as drawn."""
    return _percent(value, "width") * _percent(value, "height") / 1e4


def _whole(first: float, last: float, side: int) -> tuple[int, int]:
    """Percent to whole pixels inside the image; at least one pixel where the rectangle touches it."""
    slack = _SLACK * side
    start = math.floor(first / 100 * side + slack)
    return max(0, start), min(side, max(start + 1, math.ceil(last / 100 * side - slack)))


def _percent(value: Mapping[str, Any], name: str) -> float:
    number = value.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float) or not -_FARTHEST <= number <= _FARTHEST:
        raise ValueError(f"has no size: its {name} is {_shown(number)}")
    return float(number)


def _shown(value: Any) -> str:
    return repr(value)[:100]
