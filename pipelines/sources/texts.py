"""Texts and choices in users' rows: letters in any spelling, and choices inside a question.

    split_question("Which colour?\\nA) red\\nB) blue")     # ("Which colour?", ("A. red", "B. blue"))

Our choices begin with ``A. ``. Letters in any spelling are recognised where they run from A on in the choices' order;
any other beginning (``E. coli``) is part of the choice's text.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources.columns import value_at
from darkroom.pipelines.sources.media import describe


def text_at(row: Mapping[str, Any], column: str) -> str:
    """A column's text, stripped. Raises ``RowError`` for anything but text and numbers."""
    return plain_text(value_at(row, column), column)


def plain_text(value: Any, column: str) -> str:
    """A text, stripped, or a number as one; JSON's ``Infinity`` is ∞. Raises ``RowError`` for NaN and anything else."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value != value:  # NaN; an int may be too large for math.isnan
            raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected text or a number, found NaN")
        return str(value).replace("inf", "∞")
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
    """``("A. red", "B. blue")`` from texts with or without letters. Raises ``RowError`` for more choices than letters,
    and for a full set of letters in another order, where an index and a letter would name different choices."""
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
    return [] if len(starts) < 2 or text[: starts[0].start()].strip() else _texts_after(starts, text, ";；,，")


def plain_label(answer: str) -> str:
    """``"[B]"``, ``"b)"``, ``"B.blue"`` as ``"B"``, ``"B"``, ``"B. blue"``, for ``records.answers``."""
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
    return "\n".join([_without_heading("\n".join(lines[:start])), *lines[end:]]), texts


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
    return _texts_after(labels, block, ",;")


def _texts_after(labels: Sequence[re.Match[str]], block: str, separators: str) -> list[str]:
    """The text after each label, up to the next one; none where one is empty."""
    ends = [*(label.start() for label in labels[1:]), len(block)]
    texts = [block[label.end() : end].strip() for label, end in zip(labels, ends, strict=True)]
    texts = [text.rstrip(separators).rstrip() for text in texts]
    return texts if all(texts) else []


def _without_heading(stem: str) -> str:
    headings = list(_HEADING.finditer(stem))
    last = headings[-1] if headings else None
    return stem[: last.start()] if last and not stem[last.end() :].strip() else stem


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups()[:-1] if group).upper()
