"""Answers that are more than their letters: dates, times of day, infinity, ratios and scores, years in a row.

A date (3 March 2021, March 3rd, 2021, 2021-03-03) is a year, a month and a day, as far as they are written; a date
without its year is no date with one. A date in figures alone ("03/04/2021") may be read day first or month first: it is
another spelling of a written date only where one reading is possible or both are the same. A time is hours and minutes;
"am" and "pm" count where both have them, and an hour above twelve is one of the afternoon. No clock is read.
"""

import re
from collections.abc import Iterator
from datetime import date, time
from typing import NamedTuple

from darkroom.pipelines.verification.grading.number_words import ONES, TENS, in_digits
from darkroom.pipelines.verification.grading.numeric import SPANS, same_span, texts_of_span
from darkroom.pipelines.verification.grading.word_lists import Patterns, any_of, read_words

MAX_CHARS = 60

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
_MONTHS: list[str] = _DATA["months"]
ORDINALS: list[str] = _DATA["ordinals"]
_HOURS_OF: dict[str, int] = _DATA["hours_of"]
_DATES = [re.compile(spelled) for spelled in _DATA["dates"]]
_WEEKDAYS = [re.compile(rf"\A{day}\Z", re.IGNORECASE) for day in _DATA["weekdays"]]
_NUMBERS = re.compile(rf"\b(?:{any_of(TENS)}(?:[- ]{any_of(ONES[1:10])})?|{any_of(ONES[::-1])})\b")


class CalendarDate(NamedTuple):
    """A date, as far as it is written."""

    year: int | None
    month: int
    day: int | None


def same_date(answer: str, expected: str) -> bool | None:
    """Compare dates; None where the expected answer is none."""
    figures, expected_figures = _figures(answer), _figures(expected)
    if expected_figures is not None and len(set(_readings(expected_figures))) > 1:
        # which is the day is not known: the same figures in the same order, or nothing
        return figures == expected_figures
    expected_day = _day(expected)
    weekdays = {match[1][:3].casefold() for text in (answer, expected) if (match := _RE.weekday.match(text))}
    return None if expected_day is None else _day(answer) == expected_day and len(weekdays) < 2


def wants_the_letters(question: str) -> bool:
    """Return whether the question asks what is written, so that another spelling is no answer."""
    return _RE.verbatim.search(question) is not None


def _day(text: str) -> CalendarDate | None:
    if len(text) > MAX_CHARS:
        return None
    plain = " ".join(text.split())
    plain = _RE.lead.sub("", plain, count=1)
    weekday = _RE.weekday.match(plain)
    plain = plain[weekday.end() :] if weekday else plain
    readings = set(_readings(figures)) if (figures := _figures(plain)) else set[CalendarDate]()
    # in figures only where one date may be meant
    dates = (_named(match) for spelled in _DATES if (match := spelled.match(plain)))
    day = readings.pop() if len(readings) == 1 else next(filter(None, dates), None)
    if day is None or not _exists(day):
        return None
    if weekday and day.year and day.day:
        return day if _WEEKDAYS[date(day.year, day.month, day.day).weekday()].match(weekday[1]) else None
    return day


def _named(match: re.Match[str]) -> CalendarDate | None:
    fields = match.groupdict()
    month = fields["month"].casefold().rstrip(".")
    names = (n for n, name in enumerate(_MONTHS, 1) if re.fullmatch(name, month))
    number = int(month) if month.isdigit() else next(names, None)
    day = (fields.get("day") or "").casefold()
    ordinal = ORDINALS.index(day) + 1 if day in ORDINALS else None
    if number is None or (day and ordinal is None and not day.isdigit()):
        return None
    year = int(fields["year"]) if fields.get("year") else None
    return CalendarDate(year, number, int(day) if day.isdigit() else ordinal)


def _figures(text: str) -> tuple[int, int, int] | None:
    match = _RE.figures.match(" ".join(text.split())) if len(text) <= MAX_CHARS else None
    return (int(match[1]), int(match[3]), int(match[4])) if match and len(match[4]) == 4 else None


def _readings(figures: tuple[int, int, int]) -> Iterator[CalendarDate]:
    first, second, year = figures
    yield from (day for day in (CalendarDate(year, second, first), CalendarDate(year, first, second)) if _exists(day))


def _exists(day: CalendarDate) -> bool:
    try:
        date(day.year or 2000, day.month, day.day or 1)  # a leap year, where none is written
    except ValueError:
        return False
    return True


def _time(text: str) -> time | None:
    if len(text) > MAX_CHARS:
        return None
    plain = _RE.lead.sub("", " ".join(text.casefold().replace("’", "'").split()), count=1)
    if plain in _HOURS_OF:
        return time(_HOURS_OF[plain])
    if (figures := _NUMBERS.sub(lambda word: in_digits(word[0]), plain)) != plain:
        plain = _RE.hour_and_minute.sub(lambda clock: f"{clock[1]}:{int(clock[2]):02}", figures)
    if match := _RE.clock.match(plain):
        fields = match.groupdict("")
        if not any(fields[part] for part in ("minute", "o", "half", "part")):
            return None
        hour, minute, second = (int(fields[part] or 0) for part in ("hour", "minute", "second"))
        return _clock(hour, minute, second, match)
    match = _RE.beside.match(plain)
    return _beside(match) if match else None


def _beside(match: re.Match[str]) -> time | None:
    """ "a quarter to seven", "half past four"."""
    word, hour = match["minutes"], int(match["hour"])
    minutes = {"half": 30, "quarter": 15}.get(word) or int(word)
    if not 0 < minutes < 60 or (word == "half" and match["way"] not in ("past", "after")) or not 1 <= hour <= 12:
        return None
    if match["way"] in ("past", "after"):
        return _clock(hour, minutes, 0, match)
    return _clock(hour - 1 or 12, 60 - minutes, 0, match)


def _clock(hour: int, minute: int, second: int, match: re.Match[str]) -> time | None:
    if not (half := match["half"] or "") and (part := match["part"]):
        half = "a" if "morning" in part else "p"
    if not (hour < 24 and minute < 60 and second < 60) or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return time(hour, minute, second)


def infinity(text: str) -> int | None:
    """Return 1 for infinity, -1 for minus infinity; None for anything else."""
    if (match := _RE.infinite.match(text) if len(text) <= MAX_CHARS else None) is None:
        return None
    return -1 if (match[1] or "").casefold() in ("-", "minus", "negative") else 1


def same_reading(answer: str, expected: str, *, question: str) -> bool | None:
    """Return whether the two are one, read as what ``expected`` is; None where it is none of these."""
    if len(expected) > MAX_CHARS or len(answer) > 4 * MAX_CHARS or wants_the_letters(question):
        return None
    if (expected_infinity := infinity(expected)) is not None:
        return infinity(answer) == expected_infinity
    ratio = _RE.score if _RE.is_score.search(question) else _RE.ratio
    expected_time = _time(expected)
    read = [same_date(answer, expected), None if expected_time is None else _time(answer) == expected_time]
    read += [same_span(answer, expected, question=question), _same_hours(answer, expected)]
    if expected_time is None or not _RE.time_of_day.search(question):
        read += [_pair(ratio, answer, expected)]
    verdicts = [same for same in read if same is not None]
    return any(verdicts) if verdicts else None


def _same_hours(answer: str, expected: str) -> bool | None:
    """Compare "9:00-17:00", "9 am to 5 pm"; None where no hours are expected."""
    hours = [*map(_time, texts_of_span(SPANS[1], expected))]
    given = [_time(part) or _time(f"{part}:00") for part in texts_of_span(SPANS[1], answer)]
    return given == hours if hours and None not in hours else None


def _pair(pattern: re.Pattern[str], answer: str, expected: str) -> bool | None:
    answer, expected = (_RE.thousands.sub("", " ".join(text.split())) for text in (answer, expected))
    if (expected_match := pattern.match(expected)) is None:
        return None
    match = pattern.match(_NUMBERS.sub(lambda word: in_digits(word[0]), answer))
    return match is not None and [*map(int, match.groups())] == [*map(int, expected_match.groups())]
