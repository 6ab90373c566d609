"""Planted errors: a correct record with one error put in, to measure whether cross-checks detect it. The record stays
valid by the rules of submissions: only the image shows the error. The same seed plants the same error."""

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

import yaml

from darkroom.annotation.rounds.submissions import RecordFields
from darkroom.pipelines.records.answers import matches
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.records.geometry import Box

PlantedErrorKind = Literal["wrong_answer", "moved_box", "wrong_category", "wrong_count"]
ERRORS: tuple[PlantedErrorKind, ...] = ("wrong_answer", "moved_box", "wrong_category", "wrong_count")
_WORDS = yaml.safe_load(Path(__file__).with_name("planted_errors.yaml").read_text(encoding="utf-8"))
_LONGEST_EDITED = 24
"""Longest answer, in characters, in which a checker can be expected to notice one wrong letter."""
_TRIES = 400


class PlantedRecord(NamedTuple):
    """The record with its error."""

    kind: PlantedErrorKind
    fields: RecordFields


def plant(
    fields: RecordFields, size: tuple[int, int], *, seed: str | int, errors: Iterable[PlantedErrorKind] = ERRORS
) -> PlantedRecord | None:
    """The record with one of ``errors``, sampled by ``seed`` among the possible ones; None if none is possible."""
    random = Random(seed_from("gold", seed))
    allowed = [error for error in ERRORS if error in set(errors)]
    for error in random.sample(allowed, len(allowed)):
        match error:
            case "wrong_answer":
                planted = _wrong_answer(fields, random)
            case "moved_box":
                planted = _moved_box(fields, size, random)
            case "wrong_count":
                planted = _wrong_count(fields, random)
            case "wrong_category":
                wrong = _WORDS["surely_wrong"].get(fields.category)
                planted = replace(fields, category=random.choice(wrong), count=None) if wrong else None
        if planted is not None:
            return PlantedRecord(error, planted)
    return None


def _wrong_answer(fields: RecordFields, random: Random) -> RecordFields | None:
    if fields.category == "quantity":
        return None  # the answer is the count: see wrong_count
    for edited in _edits(fields.answer, random, is_read=fields.category == "ocr"):
        if edited is not None and not matches(edited, fields.answer):
            return replace(fields, answer=edited)
    things = _WORDS["things"] if fields.category == "object" else ()
    different = sorted(answer for answer in things if _differs(answer, fields.answer))
    return replace(fields, answer=random.choice(different)) if different else None


def _edits(answer: str, random: Random, *, is_read: bool) -> Iterator[str | None]:
    """The answer with one word or letter changed, the plainest error first; ``is_read``: it is text off the image."""
    opposites, colours = _WORDS["opposites"], _WORDS["colours"]
    if not is_read:
        yield _with_word(answer, opposites | {second: first for first, second in opposites.items()})
        yield _with_word(answer, {colour: random.choice([c for c in colours if c != colour]) for colour in colours})
    yield _with_other(answer, random, string.digits, "123456789")
    if is_read and len(answer) <= _LONGEST_EDITED:
        yield _with_other(answer, random, string.ascii_letters, string.ascii_lowercase)


def _with_word(answer: str, swaps: Mapping[str, str]) -> str | None:
    """The answer with its one word of ``swaps`` replaced; None if it has none or several."""
    words = [word for word in re.finditer(r"[A-Za-z]+", answer) if word[0].lower() in swaps]
    if len(words) != 1:
        return None
    word = words[0]
    return answer[: word.start()] + _cased(swaps[word[0].lower()], like=word[0]) + answer[word.end() :]


def _with_other(answer: str, random: Random, characters: str, others: str) -> str | None:
    """The answer with one of its ``characters`` replaced by one of ``others``; None if it has none."""
    positions = [position for position, character in enumerate(answer) if character in characters]
    if not positions:
        return None
    position = random.choice(positions)
    old = answer[position]
    new = _cased(random.choice([other for other in others if other != old.lower()]), like=old)
    return answer[:position] + new + answer[position + 1 :]


def _cased(word: str, *, like: str) -> str:
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[0].isupper() else word


def _differs(candidate: str, answer: str) -> bool:
    """Neither contains the other: "red" for "dark red" would be half right."""
    a, b = candidate.strip().casefold(), answer.strip().casefold()
    return bool(a) and a not in b and b not in a and not matches(candidate, answer)


def _moved_box(fields: RecordFields, size: tuple[int, int], random: Random) -> RecordFields | None:
    """Moves one box away from every target, by at least half its size: a loose box is no error (appendix D)."""
    if not fields.boxes:
        return None
    width, height = size
    position = random.randrange(len(fields.boxes))
    box = fields.boxes[position]
    for _ in range(_TRIES):
        x, y = random.randint(0, width - box.width), random.randint(0, height - box.height)
        moved = Box(x, y, x + box.width, y + box.height)
        around = Box(x - box.width // 2, y - box.height // 2, moved.x2 + box.width // 2, moved.y2 + box.height // 2)
        if not any(around.intersection(target).area for target in fields.boxes):
            return replace(fields, boxes=(*fields.boxes[:position], moved, *fields.boxes[position + 1 :]))
    return None


def _wrong_count(fields: RecordFields, random: Random) -> RecordFields | None:
    if fields.category != "quantity" or fields.count is None:
        return None
    count = random.choice([n for n in range(fields.count - 2, fields.count + 3) if n >= 0 and n != fields.count])
    return replace(fields, count=count, answer=_recounted(fields.answer, fields.count, count))


def _recounted(answer: str, before: int, after: int) -> str:
    """The answer with the old number, in digits or as a word, replaced by the new one."""
    numbers: list[str] = _WORDS["numbers"]
    edited = re.sub(rf"(?<![\d.,]){before}(?![\d]|[.,]\d)", str(after), answer, count=1)
    if edited != answer or max(before, after) >= len(numbers):
        return edited
    old = re.compile(rf"\b{numbers[before]}\b", re.IGNORECASE)
    return old.sub(lambda word: _cased(numbers[after], like=word[0]), answer, count=1)
