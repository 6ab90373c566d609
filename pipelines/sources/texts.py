"""Questions, answers and choices in users' rows: plain text, chat messages, placeholders, wrapping, letters.

    split_question("Which colour?\\nA) red\\nB) blue")     # ("Which colour?", ("A. red", "B. blue"))

Our choices begin with ``A. ``. Letters in any spelling are recognised where they run from A on in the choices' order;
any other beginning (``E. coli``) is part of the choice's text.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom.pipelines.models.protocols.markup import Malformed, closed_answers, one_answer
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources.columns import Columns, first_named, list_in, value_at
from darkroom.pipelines.sources.media import describe

_QUESTION_ROLES, _ANSWER_ROLES = ("user", "human"), ("assistant", "gpt")
_PLACEHOLDER = re.compile(
    r"<(?:image|video)(?:_?\d+)?>|<\|vision_start\|>|<\|(?:image|video)_pad\|>|<\|vision_end\|>", re.IGNORECASE
)
_OPEN_TAG = re.compile(r"<answer>", re.IGNORECASE)
_INFINITE = {math.inf: "∞", -math.inf: "-∞"}
_DOLLARS = (
    re.compile(r"\A\$\$([^$]+)\$\$\Z", re.DOTALL),
    re.compile(r"\A\$([^$]+)\$\Z", re.DOTALL),
    re.compile(r"\A\\\(((?:(?!\\\)).)+)\\\)\Z", re.DOTALL),
    re.compile(r"\A\\\[((?:(?!\\\]).)+)\\\]\Z", re.DOTALL),
)


def text_at(row: Mapping[str, Any], column: str) -> str:
    """A column's text, stripped. Raises ``RowError`` for anything but text and numbers."""
    return _text(value_at(row, column), column)


def question_of(row: Mapping[str, Any], columns: Columns) -> str:
    """The question, without image placeholders and the lines that the mapping drops."""
    name = first_named(row, columns.question)
    text = _message_text(value_at(row, name), name, _QUESTION_ROLES)
    if _PLACEHOLDER.search(text):
        text = re.sub(r"[ \t]{2,}", " ", _PLACEHOLDER.sub(" ", text))
    if columns.drop_lines:
        text = "\n".join(line for line in text.splitlines() if not line.strip().startswith(columns.drop_lines))
    return text.strip()


def answer_of(row: Mapping[str, Any], columns: Columns) -> str:
    """The answer's text; JSON's ``Infinity`` is ∞.

    Raises ``RowError`` for NaN, and for a list, unless the mapping declares accepted spellings.
    """
    name = first_named(row, columns.answer)
    value = value_at(row, name)
    if columns.answer_list == "first" and not _is_conversation(value):
        value = _first(value, name)
    text = _message_text(value, name, _ANSWER_ROLES)
    if not columns.unwrap_answer:
        return text
    bare = unwrapped(text, name)
    return _text(_first(bare, name), name) if columns.answer_list == "first" else bare


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
    for dollars in _DOLLARS:
        if formula := dollars.match(inner):
            return formula[1].strip()
    return inner


def _message_text(value: Any, column: str, roles: tuple[str, ...]) -> str:
    """The text itself, or the first message of ``roles`` in a conversation."""
    if not _is_conversation(value):
        return _text(value, column)
    for message in list_in(value) or []:
        if message.get("role", message.get("from")) in roles:
            return _content(message.get("content", message.get("value")), column)
    raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected a message of {' or '.join(roles)}, found none")


def _is_conversation(value: Any) -> bool:
    messages = list_in(value)
    return bool(messages) and all(
        isinstance(message, Mapping) and ("role" in message or "from" in message) for message in messages or []
    )


def _content(content: Any, column: str) -> str:
    """A message's text; of a list of parts, its texts."""
    if not isinstance(content, list | tuple):
        return _text(content, column)
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(_text(part, column) for part in parts if part is not None)


def _first(value: Any, column: str) -> Any:
    """The first of a list; a text counts as one if it contains a list of texts (``[0, 1]`` is an interval)."""
    values = list_in(value)
    if values is None or (isinstance(value, str) and not all(isinstance(element, str) for element in values)):
        return value
    if not values:
        raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected text, found an empty list")
    return values[0]


def _text(value: Any, column: str) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value != value:  # NaN; an int may be too large for math.isnan
            raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected text or a number, found NaN")
        return _INFINITE.get(value) or str(value)
    raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected text, found {describe(value)}")


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LABEL = re.compile(
    r"\A(?:\(([A-Za-z])\)\s*|\[([A-Za-z])\]\s*|([A-Za-z])\)\s*|([A-Za-z])[.．:：、]\s+)(\S.*)\Z", re.DOTALL
)
_LINE = re.compile(r"\A\s*+(?:\(([A-Z])\)|\[([A-Z])\]|([A-Z])[.．:：、)）])\s*+(\S.*)\Z")
_INLINE = re.compile(r"(?:(?<=\s)|(?<=\A)|(?<=[,;]))(?:\(([A-Z])\)\s*|([A-Z])[.:)]\s+)")
_LISTED = re.compile(r"(?:\A|[;；,，\n])[ \t]{0,9}\(?([A-Z])[.．、:：)]")
_HEADING = re.compile(
    r"(?:^[ \t]*|(?<=[.?!)])[ \t]+)(?:the )?(?:answer )?(?:choices|options)(?: are)?[ \t]*[:：][ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"\A\s*[-*•]\s+")
_FEWEST_INLINE = 3
"""Without a heading: "is it (A) or (B)" is a question, not its choices."""


def lettered(texts: Sequence[str]) -> tuple[str, ...]:
    """``("A. red", "B. blue")`` from texts with or without letters.

    Raises ``RowError`` for more choices than letters, and for a full set of letters in another order, where an index
    and a letter would name different choices.
    """
    if len(texts) > len(LETTERS):
        raise RowError(Reason.MALFORMED_ROW, f"{len(texts)} choices, at most {len(LETTERS)}")
    labels = [_LABEL.match(text.strip()) for text in texts]
    letters = [_letter(label) for label in labels if label]
    if letters == list(LETTERS[: len(texts)]):
        return tuple(f"{letter}. {label[5].strip()}" for letter, label in zip(LETTERS, labels, strict=False) if label)
    if sorted(letters) == list(LETTERS[: len(texts)]):
        raise RowError(Reason.MALFORMED_ROW, f"the choices' letters run {', '.join(letters)}")
    return tuple(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))


def from_letters(choices: Mapping[str, Any]) -> tuple[str, ...]:
    """Choices from ``{"A": "red", "B": "blue"}``; letters without a text are skipped. Raises ``RowError``."""
    texts = {str(letter).strip().upper(): text for letter, text in choices.items() if text not in (None, "")}
    if sorted(texts) != list(LETTERS[: len(texts)]):
        raise RowError(Reason.MALFORMED_ROW, f"the choices' letters are {', '.join(sorted(texts))}")
    return tuple(f"{letter}. {texts[letter]}" for letter in sorted(texts))


def choices_in(text: str) -> list[str]:
    """The choices that one text lists in order, ``A. red; B. blue``, without their letters; none without two."""
    starts: list[re.Match[str]] = []
    for label in _LISTED.finditer(text):
        if len(starts) < len(LETTERS) and label[1] == LETTERS[len(starts)]:
            starts.append(label)
    if len(starts) < 2 or text[: starts[0].start()].strip():
        return []
    ends = [*(label.start() for label in starts[1:]), len(text)]
    texts = [text[label.end() : end].strip().rstrip(";；,，").rstrip() for label, end in zip(starts, ends, strict=True)]
    return texts if all(texts) else []


def plain_label(answer: str) -> str:
    """``"[B]"``, ``"b)"``, ``"B.blue"`` as ``"B"``, ``"B"``, ``"B. blue"``, for
    ``darkroom.pipelines.records.answers``."""
    if letter := re.fullmatch(r"[(\[]?([A-Za-z])[)\].:：]?", answer.strip()):
        return letter[1].upper()
    label = _LINE.match(answer.rstrip())
    return f"{_letter(label)}. {label[4]}" if label else answer


def split_question(question: str) -> tuple[str, tuple[str, ...]]:
    """The question without its choices, and the choices; none if fewer than two are recognised."""
    for split in (_lines, _below_heading, _inline):
        stem, texts = split(question)
        if len(texts) >= 2 and stem.strip():
            return stem.strip(), lettered(texts)
    return question, ()


def _lines(question: str) -> tuple[str, list[str]]:
    """Lines that begin with A, B, C, … in a row; lines after them stay with the question."""
    lines = question.splitlines()
    labels = [_LINE.match(line.rstrip()) for line in lines]
    starts = [n for n, label in enumerate(labels) if label and _letter(label) == "A"]
    if len(starts) != 1:  # two lists are ambiguous
        return question, []
    texts: list[str] = []
    end = start = starts[0]
    for n in range(start, len(lines)):
        label = labels[n]
        if label and len(texts) < len(LETTERS) and _letter(label) == LETTERS[len(texts)]:
            texts.append(label[4])
            end = n + 1
        elif lines[n].strip():
            break
    if any(labels[end:]):
        return question, []
    stem = _without_heading("\n".join(lines[:start]))
    return "\n".join([stem, *lines[end:]]), texts


def _below_heading(question: str) -> tuple[str, list[str]]:
    """``Choices:``, then one per line, or all in one line with letters."""
    headings = list(_HEADING.finditer(question))
    if not headings:
        return question, []
    stem, block = question[: headings[-1].start()], question[headings[-1].end() :].strip()
    lines = [_BULLET.sub("", line).strip() for line in block.splitlines() if line.strip()]
    return stem, lines if len(lines) > 1 else _between_letters(block)


def _inline(question: str) -> tuple[str, list[str]]:
    """``(A) red (B) blue (C) green`` at the end of the text."""
    opening = re.search(r"(?:(?<=\s)|\A)\(A\)", question)
    texts = _between_letters(question[opening.start() :]) if opening else []
    return (question[: opening.start()], texts) if opening and len(texts) >= _FEWEST_INLINE else (question, [])


def _between_letters(block: str) -> list[str]:
    labels = list(_INLINE.finditer(block))
    if not labels or labels[0].start() or [label[1] or label[2] for label in labels] != list(LETTERS[: len(labels)]):
        return []
    ends = [*(label.start() for label in labels[1:]), len(block)]
    texts = [block[label.end() : end].strip().rstrip(",;").rstrip() for label, end in zip(labels, ends, strict=True)]
    return texts if all(texts) else []


def _without_heading(stem: str) -> str:
    headings = list(_HEADING.finditer(stem))
    last = headings[-1] if headings else None
    return stem[: last.start()] if last and not stem[last.end() :].strip() else stem


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups()[:-1] if group).upper()
