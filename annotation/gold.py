"""Known errors: a record that is right, made wrong in one way, to see whether a cross-check notices.

A planted record is valid by the rules that submissions must keep (``annotation/submissions.py``): only a look at the
image tells that it is wrong. The same seed plants the same error.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Literal, NamedTuple

from annotation.submissions import Fields
from pipelines.answers import matches
from pipelines.digest import digest, seed_from
from pipelines.geometry import Box

Error = Literal["wrong_answer", "moved_box", "wrong_category", "wrong_count"]
ERRORS: tuple[Error, ...] = ("wrong_answer", "moved_box", "wrong_category", "wrong_count")
_SURELY_WRONG = {
    "ocr": ("location", "object"),
    "attribute": ("ocr", "location", "chart"),
    "location": ("ocr", "attribute", "chart"),
    "quantity": ("ocr", "attribute", "location"),
    "object": ("location", "chart"),
    "chart": ("location", "object"),
}
"""Categories that nobody could defend; a number read off a chart may pass for ``ocr``, so that pair is not here."""
_OPPOSITES = {"yes": "no", "left": "right", "top": "bottom", "upper": "lower", "above": "below", "front": "back"}
_COLOURS = ("red", "green", "blue", "yellow", "black", "white")
_THINGS = ("an umbrella", "a fire hydrant", "a wheelbarrow", "a megaphone", "a sewing machine")
"""No kind of one another, so that none can pass for another."""
_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_LONGEST_EDITED = 24
"""Characters of an answer up to which one wrong letter can be asked to be seen."""
_TRIES = 400


class Planted(NamedTuple):
    """The record with its error."""

    error: Error
    fields: Fields


def is_chosen(item_id: str, campaign: str, share: float) -> bool:
    """Whether an item's cross-check is repeated with an error: ``share`` (0..1) of a campaign's items, always the same.

    A larger share keeps all that a smaller one had chosen.
    """
    return int(digest(["gold", campaign, item_id])[:13], 16) < share * 16**13


def plant(
    fields: Fields,
    size: tuple[int, int],
    *,
    seed: str | int,
    other_answers: Sequence[str] = (),
    errors: Iterable[Error] = ERRORS,
) -> Planted | None:
    """The record with one of ``errors``, drawn by ``seed`` among those that can be made of it; None where none can.

    ``size`` is (width, height) of the image. ``other_answers`` are answers of other records of the same category, of
    which one is taken where the record's own cannot be edited into a wrong one; whoever plants the same record twice
    must give the same ones, or may get another error.
    """
    random = Random(seed_from("gold", seed))
    kinds: dict[Error, Callable[[], Fields | None]] = {
        "wrong_answer": lambda: _wrong_answer(fields, other_answers, random),
        "moved_box": lambda: _moved_box(fields, size, random),
        "wrong_category": lambda: _wrong_category(fields, random),
        "wrong_count": lambda: _wrong_count(fields, random),
    }
    wanted = [error for error in ERRORS if error in set(errors)]
    for error in random.sample(wanted, len(wanted)):
        planted = kinds[error]()
        if planted is not None:
            return Planted(error, planted)
    return None


def _wrong_answer(fields: Fields, others: Sequence[str], random: Random) -> Fields | None:
    if fields.category == "quantity":
        return None  # the answer is the count: see wrong_count
    makers = (_other_digit, _other_letter) if fields.category == "ocr" else (_opposite, _other_colour, _other_digit)
    for make in makers:
        edited = make(fields.answer, random)
        if edited is not None and not matches(edited, fields.answer):
            return replace(fields, answer=edited)
    pool = (*others, *(_THINGS if fields.category == "object" else ()))
    different = sorted({other for other in pool if _differs(other, fields.answer)})
    return replace(fields, answer=random.choice(different)) if different else None


def _opposite(answer: str, random: Random) -> str | None:
    pairs = {**_OPPOSITES, **{second: first for first, second in _OPPOSITES.items()}}
    return _with_word(answer, pairs)


def _other_colour(answer: str, random: Random) -> str | None:
    return _with_word(answer, {one: random.choice([other for other in _COLOURS if other != one]) for one in _COLOURS})


def _with_word(answer: str, instead: Mapping[str, str]) -> str | None:
    """The answer with the one word replaced that ``instead`` has; None where it has none or several of its words."""
    found = [word for word in re.finditer(r"[A-Za-z]+", answer) if word[0].lower() in instead]
    if len(found) != 1:
        return None
    word = found[0]
    return answer[: word.start()] + _cased(instead[word[0].lower()], like=word[0]) + answer[word.end() :]


def _other_digit(answer: str, random: Random) -> str | None:
    places = [place for place, letter in enumerate(answer) if letter in string.digits]
    if not places:
        return None
    place = random.choice(places)
    return _with_letter(answer, place, random.choice([digit for digit in "123456789" if digit != answer[place]]))


def _other_letter(answer: str, random: Random) -> str | None:
    places = [place for place, letter in enumerate(answer) if letter in string.ascii_letters]
    if not places or len(answer) > _LONGEST_EDITED:
        return None
    place = random.choice(places)
    letters = [letter for letter in string.ascii_lowercase if letter != answer[place].lower()]
    return _with_letter(answer, place, _cased(random.choice(letters), like=answer[place]))


def _with_letter(answer: str, place: int, letter: str) -> str:
    return answer[:place] + letter + answer[place + 1 :]


def _cased(word: str, *, like: str) -> str:
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[0].isupper() else word


def _differs(other: str, answer: str) -> bool:
    """Neither holds the other: "red" beside "dark red" would be half right."""
    a, b = other.strip().casefold(), answer.strip().casefold()
    return bool(a) and a not in b and b not in a and not matches(other, answer)


def _moved_box(fields: Fields, size: tuple[int, int], random: Random) -> Fields | None:
    """One box moved clear of every target, by half its own size at least: a loose box is no error (appendix D)."""
    if not fields.boxes:
        return None
    width, height = size
    place = random.randrange(len(fields.boxes))
    box = fields.boxes[place]
    for _ in range(_TRIES):
        x, y = random.randint(0, width - box.width), random.randint(0, height - box.height)
        moved = Box(x, y, x + box.width, y + box.height)
        around = Box(x - box.width // 2, y - box.height // 2, moved.x2 + box.width // 2, moved.y2 + box.height // 2)
        if not any(_overlap(around, other) for other in fields.boxes):
            return replace(fields, boxes=(*fields.boxes[:place], moved, *fields.boxes[place + 1 :]))
    return None


def _overlap(left: Box, right: Box) -> bool:
    common = left.intersection(right)
    return common.width > 0 and common.height > 0


def _wrong_category(fields: Fields, random: Random) -> Fields | None:
    wrong = _SURELY_WRONG.get(fields.category)
    return replace(fields, category=random.choice(wrong), count=None) if wrong else None


def _wrong_count(fields: Fields, random: Random) -> Fields | None:
    if fields.category != "quantity" or fields.count is None:
        return None
    count = random.choice([n for n in range(fields.count - 2, fields.count + 3) if n >= 0 and n != fields.count])
    return replace(fields, count=count, answer=_recounted(fields.answer, fields.count, count))


def _recounted(answer: str, before: int, after: int) -> str:
    """The answer with the new number where it says the old one, in digits or as a word."""
    said = re.sub(rf"(?<![\d.,]){before}(?![\d]|[.,]\d)", str(after), answer, count=1)
    if said != answer or max(before, after) >= len(_NUMBERS):
        return said
    return re.sub(
        rf"\b{_NUMBERS[before]}\b",
        lambda found: _cased(_NUMBERS[after], like=found[0]),
        answer,
        count=1,
        flags=re.IGNORECASE,
    )
