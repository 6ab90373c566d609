"""Choices as somebody's data has them: with letters in any spelling, as an object of letters, inside the question.

    split_question("Which colour?\\nA) red\\nB) blue")     # ("Which colour?", ("A. red", "B. blue"))

Ours begin with ``A. ``. Letters that run from A on in the choices' order are spellings of ours; anything else in front
of a choice (``E. coli``) belongs to its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.rejects import Reason, RowFault

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_LABEL = re.compile(
    r"\A(?:\(([A-Za-z])\)\s*|\[([A-Za-z])\]\s*|([A-Za-z])\)\s*|([A-Za-z])[.．:：、]\s+)(\S.*)\Z", re.DOTALL
)
_LINE = re.compile(r"\A\s*(?:\(([A-Z])\)|\[([A-Z])\]|([A-Z])[.．:：、)）])\s*(\S.*?)\s*\Z")
_INLINE = re.compile(r"(?:(?<=\s)|(?<=\A)|(?<=[,;]))(?:\(([A-Z])\)\s*|([A-Z])[.:)]\s+)")
_HEADING = re.compile(
    r"(?:^[ \t]*|(?<=[.?!)])[ \t]+)(?:the )?(?:answer )?(?:choices|options)(?: are)?[ \t]*[:：][ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"\A\s*[-*•]\s+")
_FEWEST_INLINE = 3
"""Without a heading: "is it (A) or (B)" is a question, not its choices."""


def lettered(texts: Sequence[str]) -> tuple[str, ...]:
    """``("A. red", "B. blue")`` of texts with or without letters.

    Raises ``RowFault`` for more choices than letters, and where each of the letters is there but in another order: an
    index and a letter would then name different choices.
    """
    if len(texts) > len(LETTERS):
        raise RowFault(Reason.MALFORMED_ROW, f"{len(texts)} choices, at most {len(LETTERS)}")
    found = [_LABEL.match(text.strip()) for text in texts]
    letters = [_letter(match) for match in found if match]
    if letters == list(LETTERS[: len(texts)]):
        return tuple(f"{letter}. {match[5].strip()}" for letter, match in zip(LETTERS, found, strict=False) if match)
    if sorted(letters) == list(LETTERS[: len(texts)]):
        raise RowFault(Reason.MALFORMED_ROW, f"the choices' letters run {', '.join(letters)}")
    return tuple(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))


def from_letters(choices: Mapping[str, Any]) -> tuple[str, ...]:
    """Choices of ``{"A": "red", "B": "blue"}``; letters without a text at the end are none. Raises ``RowFault``."""
    given = {str(letter).strip().upper(): text for letter, text in choices.items() if text not in (None, "")}
    if sorted(given) != list(LETTERS[: len(given)]):
        raise RowFault(Reason.MALFORMED_ROW, f"the choices' letters are {', '.join(sorted(given))}")
    return tuple(f"{letter}. {given[letter]}" for letter in sorted(given))


def plain_label(answer: str) -> str:
    """``"[B]"``, ``"b)"`` and ``"B.blue"`` as ``pipelines.answers`` reads them: ``"B"``, ``"B"``, ``"B. blue"``."""
    if found := re.fullmatch(r"[(\[]?([A-Za-z])[)\].:：]?", answer.strip()):
        return found[1].upper()
    found = _LINE.match(answer)
    return f"{_letter(found)}. {found[4]}" if found else answer


def split_question(question: str) -> tuple[str, tuple[str, ...]]:
    """The question without its choices, and the choices; none where nothing in it reads as two or more of them."""
    for split in (_lines, _below_heading, _inline):
        stem, texts = split(question)
        if len(texts) >= 2 and stem.strip():
            return stem.strip(), lettered(texts)
    return question, ()


def _lines(question: str) -> tuple[str, list[str]]:
    """Lines that begin with A, B, C, …, one after the other; what follows them stays with the question."""
    lines = question.splitlines()
    found = [_LINE.match(line) for line in lines]
    starts = [n for n, match in enumerate(found) if match and _letter(match) == "A"]
    if len(starts) != 1:  # two lists: which one is meant, nobody can tell
        return question, []
    texts: list[str] = []
    end = start = starts[0]
    for n in range(start, len(lines)):
        match = found[n]
        if match and len(texts) < len(LETTERS) and _letter(match) == LETTERS[len(texts)]:
            texts.append(match[4])
            end = n + 1
        elif lines[n].strip():
            break
    if any(found[end:]):
        return question, []
    stem = _without_heading("\n".join(lines[:start]))
    return "\n".join([stem, *lines[end:]]), texts


def _below_heading(question: str) -> tuple[str, list[str]]:
    """``Choices:`` and then a line each, or all of them in one line with letters."""
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
    found = list(_INLINE.finditer(block))
    if not found or found[0].start() or [match[1] or match[2] for match in found] != list(LETTERS[: len(found)]):
        return []
    ends = [*(match.start() for match in found[1:]), len(block)]
    texts = [block[match.end() : end].strip().rstrip(",;").rstrip() for match, end in zip(found, ends, strict=True)]
    return texts if all(texts) else []


def _without_heading(stem: str) -> str:
    headings = list(_HEADING.finditer(stem))
    last = headings[-1] if headings else None
    return stem[: last.start()] if last and not stem[last.end() :].strip() else stem


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups()[:-1] if group).upper()
