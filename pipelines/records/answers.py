"""Compare answers: choices by letter or text, numbers by value, text by its words.

Strict on purpose: an answer that hedges ("A or B"), negates or lists several things matches nothing; "12%" is not
"12", and "007" is a code, not seven. Compatible spellings are one (NFKC: fullwidth digits are digits), case is none.
Units, tolerance and maths are the business of ``darkroom.pipelines.verification.grading``.
"""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

_CHOICE = re.compile(r"\A\(?([A-Z])\)?[.:)]?(?:\s+(.*))?\Z", re.DOTALL | re.IGNORECASE)
_SEVERAL = re.compile(r"[,;&]|\band\b")
_NUMERAL = re.compile(r"\A[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,4})?\Z", re.ASCII)
_THOUSANDS = re.compile(r"\A[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\Z", re.ASCII)
_TAGGED = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s*\{")
_PLACED = ("<super>", "<sub>", "<fraction>")
_QUOTED = re.compile(r"""\A(?:"(.+)"|'(.+)'|`(.+)`|“(.+)”|‘(.+)’)\Z""", re.DOTALL)


def matches(answer: str, expected: str, choices: Sequence[str] = ()) -> bool:
    """True if ``answer`` is the expected answer. With ``choices`` (each ``"A. red"``), ``expected`` is a letter, a
    choice's text or several of them, and so is ``answer``, or letter and text if they agree; a letter alone is a
    choice's letter, even where another's text is that letter. Else numbers count by value, other texts by words."""
    if choices:
        chosen, right = letters_of(answer, choices), letters_of(expected, choices)
        return bool(chosen) and chosen == right
    answer_text, right_text = _plain(answer), _plain(expected)
    numbers = _number(answer_text), _number(right_text)
    return bool(answer_text) and (answer_text == right_text if None in numbers else numbers[0] == numbers[1])


def final_answer(text: str) -> str | None:
    """Extract the answer: the last ``<answer>…</answer>``, or the last ``\boxed{…}``; None without one."""
    tagged = _TAGGED.findall(text)
    if tagged:
        return str(tagged[-1]).strip()
    starts = [boxed.end() for boxed in _BOXED.finditer(text)]
    return _braced(text, starts[-1]) if starts else None


def letter_of(answer: str, choices: Sequence[str]) -> str | None:
    """The letter of the one choice that ``answer`` names; None if it names none, or two that differ."""
    texts = {letter: _plain(text) for letter, text in map(split_choice, choices)}
    match = _CHOICE.match(compatible(answer).strip())
    letter = match[1].upper() if match and match[1].upper() in texts else None
    if match and letter and not match[2]:
        return letter
    by_text = [letter for letter, text in texts.items() if text == _plain(answer)]
    if len(by_text) == 1:
        return by_text[0]
    return letter if match and letter and texts[letter] == _plain(match[2]) else None


def letters_of(answer: str, choices: Sequence[str]) -> tuple[str, ...]:
    """The letter that ``answer`` names, or those of "A, C and E", each once; empty where a part names no choice."""
    letters = [letter_of(answer, choices) or ""]
    letters = letters if letters[0] else [letter_of(part, choices) or "" for part in _SEVERAL.split(answer)]
    return tuple(sorted(set(letters))) if all(letters) else ()


def split_choice(choice: str) -> tuple[str, str]:
    """``"A. red"`` as its letter and its text. Raises ``ValueError`` for what is no choice."""
    match = _CHOICE.match(choice.strip())
    if match is None or match[2] is None:
        raise ValueError(f"a choice reads 'A. text'; found {choice!r}")
    return match[1].upper(), match[2]


def compatible(text: str) -> str:
    """NFKC, except for letters whose place means something: "5²" is not "52", nor "1½" "11/2"."""
    if text.isascii():
        return text
    forms = ((letter, unicodedata.decomposition(letter)) for letter in unicodedata.normalize("NFC", text))
    letters = (letter if form.startswith(_PLACED) else unicodedata.normalize("NFKC", letter) for letter, form in forms)
    return "".join(letters)


def _braced(text: str, start: int) -> str | None:
    """Text from ``start`` to the brace that closes there; None without one."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place].strip()
    return None


@lru_cache(maxsize=256)  # one answer is compared with many
def _plain(text: str) -> str:
    """Compatibility-normalised, lower case, single spaces, without quotes around it or a full stop at its end. A text
    of nothing but such marks stays: it may be what the question is about."""
    words = " ".join(compatible(text).casefold().split())
    bare = _unquoted(_unquoted(words).removesuffix(".").rstrip())
    return bare.removesuffix(".").rstrip() or words


def _unquoted(text: str) -> str:
    match = _QUOTED.match(text)
    return match[match.lastindex or 0].strip() if match else text


@lru_cache(maxsize=256)  # one answer is compared with many
def _number(text: str) -> Decimal | None:
    digits = text.replace(",", "") if _THOUSANDS.match(text) else text
    return Decimal(digits) if _NUMERAL.match(digits) else None


def edit_similarity(text: str, expected: str) -> float:
    """1 less Levenshtein's distance as a share of the longer text, 0..1; 0 where both are empty."""
    row = list(range(len(expected) + 1))
    for n, letter in enumerate(text, 1):
        diagonal, row[0] = row[0], n
        for m, expected_letter in enumerate(expected, 1):
            diagonal, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, diagonal + (letter != expected_letter))
    longer = max(len(text), len(expected))
    return 1 - row[-1] / longer if longer else 0.0
