"""Whether two answers say the same: choices by letter or text, numbers by value, text by its words.

Strict on purpose: an answer that hedges ("A or B"), negates or lists several things matches nothing. Graders with
units, tolerance and maths are a later stage's; this is what synthesis needs to trust a trajectory.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

_CHOICE = re.compile(r"\A\(?([A-Z])\)?[.:)]?(?:\s+(.*))?\Z", re.DOTALL | re.IGNORECASE)
_THOUSANDS = re.compile(r"\A[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")


def matches(given: str, expected: str, choices: Sequence[str] = ()) -> bool:
    """Whether ``given`` is the expected answer.

    With ``choices`` (each ``"A. red"``), ``expected`` is a letter or a choice's text, and ``given`` may be either, or
    both if they agree. Without, numbers are compared by value and everything else by its normalised words.
    """
    if choices:
        chosen, right = _letter(given, choices), _letter(expected, choices)
        return chosen is not None and chosen == right
    left, right_text = _plain(given), _plain(expected)
    if not left:
        return False
    numbers = _number(left), _number(right_text)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return left == right_text


def _letter(answer: str, choices: Sequence[str]) -> str | None:
    """The letter of the one choice that ``answer`` names; None if it names none, or two that differ."""
    texts = {letter: _plain(text) for letter, text in map(_split_choice, choices)}
    plain = _plain(answer)
    by_text = [letter for letter, text in texts.items() if text == plain]
    if len(by_text) == 1:
        return by_text[0]
    found = _CHOICE.match(answer.strip())
    if found is None or found[1].upper() not in texts:
        return None
    letter, rest = found[1].upper(), _plain(found[2] or "")
    return letter if not rest or rest == texts[letter] else None


def _split_choice(choice: str) -> tuple[str, str]:
    found = _CHOICE.match(choice.strip())
    if found is None or found[2] is None:
        raise ValueError(f"a choice reads 'A. text'; found {choice!r}")
    return found[1].upper(), found[2]


def _plain(text: str) -> str:
    """Compatibility-normalised, lower case, single spaces, without quotes around it or a full stop at its end."""
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return words.strip("\"'`“”‘’ ").removesuffix(".").strip()


def _number(text: str) -> Decimal | None:
    digits = text.replace(",", "") if _THOUSANDS.match(text) else text
    try:
        value = Decimal(digits)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
