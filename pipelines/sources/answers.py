r"""Answers in users' rows: one text or a list of people's, wrapped or not; missing ones, however they are spelled.

answer_in(r"\boxed{12}", "gt", Columns(unwrap_answer=True))               # ("12", (), None, "")
answer_in(["blue", "red", "Red"], "gt", Columns(answer_list="majority"))  # ("red", ("blue",), (2, 3), MOST_FREQUENT)
answer_in("['red' 'dark red']", "gt", Columns())      # raises: a list written as text, which answer_list reads
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from darkroom.pipelines.models.protocols.markup import Malformed, closed_answers, one_answer
from darkroom.pipelines.records.answers import compatible
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources.columns import ANSWER_FIELDS, Columns, list_in
from darkroom.pipelines.sources.marks import without_marks
from darkroom.pipelines.sources.media import describe
from darkroom.pipelines.sources.texts import plain_text

MISSING = ("nan", "none", "null", "nil", "n/a", "#n/a", "<na>", "nat", "undefined", "[deleted]", "[removed]")
"""Spellings of a value that is not there, as pandas, JSON and spreadsheets print them."""
_CANNED = re.compile(
    r"\A(?:it (?:seems|looks|appears) (?:like|that|as if) (?:you|there|the)\w*\b.{0,60}\b"
    r"(?:empty|blank|missing|no|not|cut off|forgot|incomplete|didn.t|don.t|isn.t|hasn.t|haven.t)\b"
    r"|(?:i'?m |i am )?(?:very )?sorry,? (?:but )?(?:i |as an ai\b)|as an ai (?:language )?model\b)",
    re.IGNORECASE | re.DOTALL,
)
"""Replies of an assistant that was asked nothing, or does not answer."""
_OPEN_TAG = re.compile(r"<answer>", re.IGNORECASE)
_DOLLARS = re.compile(
    r"\A(?:\$\$([^$]+)\$\$|\$([^$]+)\$|\\\(((?:(?!\\\)).)+)\\\)|\\\[((?:(?!\\\]).)+)\\\])\Z", re.DOTALL
)
_WORDS = re.compile("ocr|text|document", re.IGNORECASE)


MOST_FREQUENT = "rows labelled with the most frequent of several answers"
EQUALLY_FREQUENT = "rows labelled with the first of several equally frequent answers"


class RowAnswer(NamedTuple):
    """The label, other answers that count as right, and how many of how many people gave the label."""

    text: str
    accepted: tuple[str, ...] = ()
    votes: tuple[int, int] | None = None
    choice: str = ""
    """The rule by which the label was chosen where answers differ, in the words of intake notes and cards."""


def answer_in(value: Any, column: str, columns: Columns) -> RowAnswer:
    """The answer of a column, which may hold one text, or where ``answer_list`` says how, a list. Raises ``RowError``
    for a list otherwise, for anything but text and numbers, and for a wrapper that is not closed."""
    texts = [plain_text(entry, column) for entry in _entries(value, column, columns.answer_list)]
    if columns.unwrap_answer:
        texts = [unwrapped(text, column) for text in texts]
        if len(texts) == 1:
            texts = [plain_text(entry, column) for entry in _entries(texts[0], column, columns.answer_list)]
    return _majority(texts, columns.missing_values) if len(texts) > 1 else RowAnswer(texts[0])


def _entries(value: Any, column: str, answer_list: str) -> list[Any]:
    """The entries of a list, those of VQA by their field; a text contains one if all are texts ([0, 1] is none)."""
    values = None if answer_list == "text" else list_in(value)
    are_texts = values and all(isinstance(entry, str | Mapping) for entry in values)
    if values is None or (isinstance(value, str) and not are_texts):
        return [value]
    if answer_list == "refuse":
        ways = "`answer_list: majority` accepts its spellings, `first` keeps the first, `text` the text as it is"
        raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected text, found {describe(value)}, a list: {ways}")
    entries = [
        next((entry[name] for name in ANSWER_FIELDS if entry.get(name) is not None), entry)
        if isinstance(entry, Mapping)
        else entry
        for entry in (values[:1] if answer_list == "first" else values)
        if entry is not None
    ]
    if not entries:
        raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected text, found an empty list")
    return entries


def _majority(texts: list[str], missing_values: tuple[str, ...] | None) -> RowAnswer:
    """The most frequent answer, of equally frequent ones the first; accepted is what a third as many people gave."""
    present = [text for text in texts if not missing_reason(text, missing_values)] or texts[:1]
    spellings: dict[str, Counter[str]] = {}
    for text in present:
        spellings.setdefault(" ".join(compatible(text).casefold().split()), Counter())[text] += 1
    ranked = sorted(spellings.values(), key=Counter.total, reverse=True)
    votes = ranked[0].total()
    label, *accepted = (spelling.most_common(1)[0][0] for spelling in ranked if 3 * spelling.total() >= votes)
    choice = "" if len(ranked) == 1 else MOST_FREQUENT if ranked[1].total() < votes else EQUALLY_FREQUENT
    return RowAnswer(label, tuple(accepted), (votes, len(present)), choice)


def shows_words(category: str) -> bool:
    """True for questions about what an image says, whose answer may be the word NaN."""
    return _WORDS.search(category) is not None


def missing_reason(answer: str, missing_values: tuple[str, ...] | None) -> str:
    """Why the text is no answer; empty where it is one. ``missing_values`` replace the usual spellings."""
    if not any(letter.isprintable() and not letter.isspace() for letter in answer):
        return "the answer is empty"
    words = answer.casefold().strip()
    with suppress(ValueError):
        if "e" in words and words[-1].isdigit() and math.isinf(float(words)):
            return f"the answer is {answer[:60]!r}, beyond any number that can be compared"
    if words in (MISSING if missing_values is None else [value.casefold() for value in missing_values]):
        why = f"the answer is {answer[:60]!r}, a missing value"
    elif without_marks(answer).strip() == "":
        why = f"the answer {answer[:60]!r} is the mark of an image"
    elif missing_values is None and _CANNED.match(answer):
        why = f"the answer {answer[:60]!r} is a reply about the request"
    else:
        return ""
    return f"{why}; where it is meant, list the spellings that are missing ones as `missing_values`"


def unwrapped(text: str, column: str) -> str:
    r"""The content of ``<answer>``, ``\boxed{}`` or ``$``, else the text. Raises ``RowError`` for an unclosed one."""
    tagged = [answer[1] for answer in closed_answers(text)]
    if len(_OPEN_TAG.findall(text)) > len(tagged):
        raise RowError(Reason.MALFORMED_ROW, f"column {column!r}: an <answer> is never closed: {describe(text)}")
    inner = tagged[-1].strip() if tagged else text.strip()
    box = one_answer(inner)
    if isinstance(box, Malformed):
        raise RowError(Reason.MALFORMED_ROW, f"column {column!r}: {box.evidence}")
    inner = box.answer if box else inner
    formula = _DOLLARS.match(inner)
    return formula[formula.lastindex or 0].strip() if formula else inner
