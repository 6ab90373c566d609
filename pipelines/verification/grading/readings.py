"""Answers that are more than their letters: infinity, ratios and scores, years in a row, dates, times of day."""

import re

from darkroom.pipelines.verification.grading.dates import same_date, same_time, wants_the_letters
from darkroom.pipelines.verification.grading.number_words import in_digits

_INFINITE = re.compile(r"\A(minus|negative|plus|positive|[-+])?\s*(?:\\infty|∞|infinity|inf)\Z", re.IGNORECASE)
_RATIO = re.compile(r"\A(\d{1,9})\s*(?:[:∶]|to)\s*(\d{1,9})\Z", re.IGNORECASE | re.ASCII)
_SCORE = re.compile(r"\A(\d{1,3})\s*(?:[-:∶]|to)\s*(\d{1,3})\Z", re.IGNORECASE | re.ASCII)
_SPAN = re.compile(r"\A(?:from |between )?(\d{3,4})\s*(?:-|to|and|until)\s*(\d{3,4})\Z", re.IGNORECASE | re.ASCII)
_IS_SCORE = re.compile(r"\b(?:score|result|standing|won|win|lead)\b", re.IGNORECASE)
_MAX_CHARS = 60


def infinity(text: str) -> int | None:
    """1 for infinity, -1 for minus infinity; None for anything else."""
    match = _INFINITE.match(text) if len(text) <= _MAX_CHARS else None
    if match is None:
        return None
    return -1 if (match[1] or "").casefold() in ("-", "minus", "negative") else 1


def same_reading(answer: str, expected: str, *, question: str) -> bool | None:
    """Whether the two are one, read as what ``expected`` is; None where it is none of these."""
    if len(expected) > _MAX_CHARS or len(answer) > 4 * _MAX_CHARS or wants_the_letters(question):
        return None
    if (wanted := infinity(expected)) is not None:
        return infinity(answer) == wanted
    ratio = _SCORE if _IS_SCORE.search(question) else _RATIO
    read = [same_date(answer, expected), same_time(answer, expected)]
    read += [_pair(pattern, answer, expected) for pattern in (ratio, _SPAN)]
    verdicts = [same for same in read if same is not None]
    return any(verdicts) if verdicts else None


def _pair(pattern: re.Pattern[str], answer: str, expected: str) -> bool | None:
    wanted = pattern.match(expected)
    if wanted is None:
        return None
    first, *second = " ".join(answer.split()).split(" to ", maxsplit=1)
    found = pattern.match(f"{in_digits(first)} to {in_digits(second[0])}" if second else answer)
    return found is not None and [int(part) for part in found.groups()] == [int(part) for part in wanted.groups()]
