"""Answers that are more than their letters: dates, times of day, infinity, ratios and scores, years in a row.

A date (3 March 2021, March 3rd, 2021, 2021-03-03) is a year, a month and a day, as far as they are written; a date
without its year is no date with one. A date in figures alone ("03/04/2021") may be read day first or month first: it is
another spelling of a written date only where one reading is possible or both are the same. A time is hours and minutes;
"am" and "pm" count where both have them, and an hour above twelve is one of the afternoon. No clock is read.
"""

import re
from contextlib import suppress
from datetime import datetime, time
from itertools import product

from darkroom.pipelines.verification.grading.number_words import figures
from darkroom.pipelines.verification.grading.numeric import SPANS, same_span, texts_of_span
from darkroom.pipelines.verification.grading.word_lists import Patterns, read_words, rewrites, rewritten

MAX_CHARS = 60

_DATA = read_words(__file__)
_RE = Patterns(_DATA)
_MONTHS = [(rf"(?<![^\W\d_]){name}\b\.?", f"m{n}") for n, name in enumerate(_DATA["months"], 1)]
_DATE_WORDS, _TIME_WORDS = rewrites([*_MONTHS, *_DATA["date_words"]]), rewrites(_DATA["time_words"])
_WORDS_OF_HOUR = rewrites(_DATA["words_of_hour"])
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

CalendarDate = tuple[int | None, int, int | None]
"""Year, month and day, as far as they are written."""


def same_date(answer: str, expected: str) -> bool | None:
    """Compare dates; None where the expected answer is none."""
    days, expected_days = _days(answer), _days(expected)
    if len({*expected_days}) > 1:
        # which is the day is not known: the same figures in the same order, or nothing
        return days == expected_days
    weekdays = {match[1][:3] for text in (answer, expected) if (match := _RE.weekday.match(_plain(text)))}
    is_one = len({*days}) == 1 and days[:1] == expected_days[:1] and len(weekdays) < 2
    return is_one if expected_days else None


def wants_the_letters(question: str) -> bool:
    """Return whether the question asks what is written, so that another spelling is no answer."""
    return _RE.verbatim.search(question) is not None


def _days(text: str) -> list[CalendarDate]:
    """The dates that the text may be: two where figures do not say which is the day, which comes first then."""
    plain = figures(_plain(text))
    weekday = _RE.weekday.match(plain)
    plain = rewritten(plain[weekday.end() :] if weekday else plain, _DATE_WORDS)
    plain = (_RE.gap.sub(" ", plain) if "m" in plain else plain).strip()
    days: list[CalendarDate] = []
    for form in _DATA["date_forms"] if _RE.date.match(plain) else ():
        with suppress(ValueError):
            # where no year is written, the one of 2000, a leap year
            day = datetime.strptime(*((plain, form) if "%Y" in form else (f"{plain} 2000", f"{form} %Y")))
            is_whole = "%Y" in form and "%d" in form
            if not weekday or not is_whole or _WEEKDAYS[day.weekday()] == weekday[1][:3]:
                days.append((day.year if "%Y" in form else None, day.month, day.day if "%d" in form else None))
    return days


def _plain(text: str) -> str:
    """The text without "on" or "at"; empty if it is long."""
    return _RE.lead.sub("", " ".join(text.casefold().split()), count=1) if len(text) <= MAX_CHARS else ""


def _time(text: str) -> time | None:
    plain = _plain(text)
    if (read := figures(plain)) != plain:
        plain = rewritten(read, _WORDS_OF_HOUR)
    plain = rewritten(plain, _TIME_WORDS)
    if before := _RE.before.match(plain):
        plain = f"{(int(before[2]) - 2) % 12 + 1}:{60 - int(before[1]):02}{before[3] or ''}"
    if (clock := _RE.clock.match(plain)) is None:
        return None
    hour, minute, second = (int(part or 0) for part in clock.groups()[:3])
    if clock[4]:
        hour = hour % 12 + 12 * (clock[4] == "p") if 1 <= hour <= 12 else 24
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


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
    read += [_same_moment(answer, expected)]
    if expected_time is None or not _RE.time_of_day.search(question):
        read += [_pair(ratio, answer, expected)]
    verdicts = [same for same in read if same is not None]
    return any(verdicts) if verdicts else None


def _same_moment(answer: str, expected: str) -> bool | None:
    """Compare "14 June at 8 pm"; None where no date with its time is expected."""
    moments, expected_moments = map(_moments, (answer, expected))
    pairs = product(moments, expected_moments)
    is_one = any(clock == clock_due and same_date(day, day_due) for (day, clock), (day_due, clock_due) in pairs)
    return is_one if expected_moments else None


def _moments(text: str) -> list[tuple[str, time]]:
    ends = (text.rpartition(mark) for mark in (" at ", ", ", " "))
    return [(day, clock) for day, _, end in ends if (clock := _time(end)) and _days(day)]


def _same_hours(answer: str, expected: str) -> bool | None:
    """Compare "9:00-17:00", "9 am to 5 pm"; None where no hours are expected."""
    hours = [*map(_time, texts_of_span(SPANS[1], expected))]
    given = [_time(part) or _time(f"{part}:00") for part in texts_of_span(SPANS[1], answer)]
    return given == hours if hours and None not in hours else None


def _pair(pattern: re.Pattern[str], answer: str, expected: str) -> bool | None:
    answer, expected = (_RE.thousands.sub("", " ".join(text.split())) for text in (answer, expected))
    if (expected_match := pattern.match(expected)) is None:
        return None
    match = pattern.match(figures(answer))
    return match is not None and [*map(int, match.groups())] == [*map(int, expected_match.groups())]
