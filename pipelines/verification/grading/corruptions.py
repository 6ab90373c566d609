"""Corrupted answers, and whether a grader tells a sample's own answer from them.

    measured = measure_discrimination(sample, grader_of(sample))
    measured.holds      # False: .accepted are wrong answers that passed, .refused right ones that did not

For every kind of answer there are texts that look like it and are wrong: a digit, a sign, a unit or a constant changed;
a box moved, grown, turned inside out; every kind is also denied, hedged, doubled, drowned and disguised. They are
deterministic. A text that is right after all (a digit changed within the tolerance) is not among them.

A row whose grader cannot tell is worth no rollout. A ``judged`` grader is tried without its judge.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from darkroom.pipelines.records import Grader, Sample
from darkroom.pipelines.records.answers import letters_of, split_choice
from darkroom.pipelines.records.geometry import iou
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.grading.answer_text import bare
from darkroom.pipelines.verification.grading.boxes import LEAST_OVERLAP, Corners, read_box
from darkroom.pipelines.verification.grading.choices import with_choices
from darkroom.pipelines.verification.grading.grade import grade
from darkroom.pipelines.verification.grading.lists import elements, same_list
from darkroom.pipelines.verification.grading.numeric import UNITS, read_quantity, same_span, with_unit
from darkroom.pipelines.verification.grading.text_match import same_words
from darkroom.pipelines.verification.grading.word_lists import read_words


class Corruption(NamedTuple):
    """A wrong answer. ``kind`` says in which way it is wrong."""

    kind: str
    text: str


_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|\.\d+", re.ASCII)
_FOREIGN = {"length": "kg", "length in feet": "kg", "mass": "cm", "ratio": "cm"}


def numbers(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    """Other numbers: those farther off than the tolerance allows."""
    answer = bare(sample.answer)
    candidates = (*_altered(answer), *_other_units(answer, grader.unit))
    yield from (candidate for candidate in candidates if _is_another(candidate.text, answer, grader))


def expressions(sample: Sample) -> Iterator[Corruption]:
    """A constant changed, a sign turned, something added."""
    answer = bare(sample.answer)
    # few: each costs a comparison by math-verify
    yield from (corruption for corruption in _altered(answer) if corruption.kind in ("digit changed", "two numbers"))
    turned = {"+": "-", "-": "+"}
    if sign := re.search(r"(?<=[\w})])\s*([+-])", answer):
        yield Corruption("sign turned", answer[: sign.start(1)] + turned[sign[1]] + answer[sign.end(1) :])
    yield Corruption("something added", f"{answer}+1")


def rival_number(answer: str) -> str:
    """Another number, spelled like ``answer``."""
    return next((corruption.text for corruption in _altered(answer)), f"{answer}1")


def _altered(answer: str) -> Iterator[Corruption]:
    if (match := _NUMBER.search(answer)) is None:
        return
    before, number, after = answer[: match.start()], match[0], answer[match.end() :]
    if first := re.search(r"[1-9]", number):
        changed = str(int(first[0]) % 9 + 1)
        yield Corruption("digit changed", before + number[: first.start()] + changed + number[first.end() :] + after)
    yield Corruption("digit changed", f"{before}{number[:-1]}{(int(number[-1]) + 1) % 10}{after}")
    yield Corruption("digit more", f"{before}{number}7{after}")
    yield Corruption("sign turned", f"{before[:-1] if before.endswith('-') else before + '-'}{number}{after}")
    whole, _, decimals = number.replace(",", "").partition(".")
    moved = f"{whole}{decimals[:1]}.{decimals[1:]}" if len(decimals) > 1 else f"{whole}{decimals}0"
    yield Corruption("point moved", f"{before}{moved}{after}")
    yield from (Corruption("two numbers", f"{before}{number}{more}{after}") for more in (f", {number}7", f" {number}"))


def _other_units(answer: str, unit: str) -> Iterator[Corruption]:
    own = read_quantity(with_unit(answer, unit))
    match = _NUMBER.search(answer)
    if own is None or match is None or own.unit is None:
        return
    yield Corruption("other unit", f"{answer[: match.end()]} {_FOREIGN.get(own.unit.dimension, 'cm')}")
    for unit_beside in {entry.names[0]: entry for entry in UNITS.values()}.values():
        if unit_beside.dimension == own.unit.dimension and unit_beside != own.unit:
            yield Corruption("other unit", f"{match[0]} {unit_beside.names[0]}")


def _is_another(text: str, answer: str, grader: Grader) -> bool:
    rival, own = (read_quantity(with_unit(part, grader.unit)) for part in (text, answer))
    if rival is None or own is None:
        return True
    (dimension, value), (own_dimension, own_value) = (
        (quantity.unit.dimension, quantity.value * quantity.unit.factor)
        if quantity.unit
        else (quantity.noun, quantity.value)
        for quantity in (rival, own)
    )
    return dimension != own_dimension or abs(value - own_value) > Fraction(str(grader.tolerance)) * abs(own_value)


_BELOW = 0.98
"""How far below the bound a box is put, as a share of it."""


def boxes(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    """Other boxes and no boxes. Nothing where the expected answer is none."""
    if (own := read_box(sample.answer)) is None:
        return
    least = grader.tolerance or LEAST_OVERLAP
    for kind, box in _others(own, least * _BELOW):
        if iou(box, own) < least:
            yield Corruption(kind, spelled(box))
    # a box that is most of its image is not told from the image: that is for the grader to show
    for image in sample.images[:1]:
        yield Corruption("whole image", spelled((0, 0, image.width, image.height)))
    x1, y1, x2, y2 = own
    yield Corruption("turned inside out", spelled((x2, y2, x1, y1)))
    yield Corruption("sides swapped", spelled((x2, y1, x1, y2)))
    yield Corruption("two boxes", f"{spelled(own)} {spelled(own)}")
    yield Corruption("two boxes", f"[{spelled(own)}, {spelled((0, 0, 1, 1))}]")
    yield Corruption("three corners", f"[{x1:g}, {y1:g}, {x2:g}]")
    for value in ("NaN", "Infinity", "1e999"):
        yield Corruption("not finite", f"[{x1:g}, {y1:g}, {x2:g}, {value}]")
    if max(own) > 1:
        yield Corruption("in fractions", "[0.1, 0.1, 0.9, 0.9]")


def spelled(box: Corners) -> str:
    """``[x1, y1, x2, y2]``."""
    return f"[{', '.join(f'{side:.10g}' for side in box)}]"


def _others(own: Corners, below: float) -> Iterator[tuple[str, Corners]]:
    x1, y1, x2, y2 = own
    # two equal boxes, one moved by a share m of its width: IoU = (1 - m) / (1 + m)
    share = (1 - below) / (1 + below)
    yield "moved just too far", _moved(own, share, 0)
    yield "moved just too far", _moved(own, 0, -share)
    yield "moved away", _moved(own, 2, 2)
    yield "grown", (x1, y1, x1 + (x2 - x1) / below, y2)
    yield "shrunk", (x1, y1, x2, y1 + (y2 - y1) * below)


def _moved(box: Corners, across: float, down: float) -> Corners:
    x1, y1, x2, y2 = box
    dx, dy = across * (x2 - x1), down * (y2 - y1)
    return (x1 + dx, y1 + dy, x2 + dx, y2 + dy)


RIVAL = "zanzibar"
"""A word that answers no question."""
LONG = 100_000
"""Characters of the longest corruption."""
_DATA = read_words(__file__)
_NUMBERED = re.compile(r"(?i)(?:no|nr|number)\b\.? ?#?\d+\Z")  # "No. 19", which is 19 where a number is asked for
_DISGUISES = {kind: str.maketrans(letters["from"], letters["to"]) for kind, letters in _DATA["disguises"].items()}


def phrased(answer: str, rival: str) -> Iterator[Corruption]:
    """Corruptions that suit every kind. ``rival`` is another answer of the same kind."""
    for kind in ("denied", "hedged", "zero-width", "direction", "tag"):
        yield from (Corruption(kind, form.format(answer, rival)) for form in _DATA[kind])
    yield from (Corruption(kind, text) for kind, several in _DATA["alone"].items() for text in several)
    repeated = (f"{answer} " * (LONG // (len(answer) + 1) + 1))[:LONG]
    long = (answer + " " * LONG, repeated, f"{answer}. " + "x" * LONG, "x" * LONG)
    yield from (Corruption("long", text) for text in long)
    yield Corruption("zero-width", f"{answer[:1]}\u200b{answer[1:]}")
    yield Corruption("direction", f"\u202e{answer[::-1]}")
    yield Corruption("surrogate", f"{answer}\ud800")
    # look-alikes; fullwidth letters are the same letters and not among them
    for kind, table in _DISGUISES.items():
        if (disguised := answer.translate(table)) != answer:
            yield Corruption(kind, disguised)


def corruptions(sample: Sample, grader: Grader) -> tuple[Corruption, ...]:
    """Wrong answers, each once. Those that are the expected answer itself ("All of them", asked for) are left out."""
    rival = RIVAL
    match grader.kind:
        case "choice":
            of_kind = choices(sample)
            rival = next((each.text for each in choices(sample) if each.kind == "another choice"), "Z")
        case "number":
            of_kind, rival = numbers(sample, grader), rival_number(sample.answer)
        case "maths":
            of_kind, rival = expressions(sample), rival_number(sample.answer)
        case "list":
            of_kind = lists(sample, grader)
        case "box":
            of_kind = boxes(sample, grader)
            own = read_box(sample.answer)
            rival = spelled(_moved(own, 3.0, 3.0)) if own else "[0, 0, 1, 1]"
        case "text" | "judged":
            of_kind = texts(sample)
    expected = [sample.answer, *(spelling for spelling in sample.choices if spelling.startswith(sample.answer[:1]))]
    expected += [spelling[2:].strip() for spelling in expected]
    several = [*{candidate.text: candidate for candidate in (*of_kind, *phrased(sample.answer, rival))}.values()]
    several = [each for each in several if not same_span(each.text, sample.answer, question=sample.question)]
    return tuple(wrong for wrong in several if not any(same_words(wrong.text[:4000], right) for right in expected))


def choices(sample: Sample) -> Iterator[Corruption]:
    """Every other choice by letter and by text, a letter without a choice, several at once."""
    rights = letters_of(sample.answer, sample.choices)
    right = ", ".join(rights)
    yield from (Corruption("choice missing", letter) for letter in rights if len(rights) > 1)
    split = dict(map(split_choice, sample.choices))
    others = [letter for letter in split if letter not in rights]
    texts = [text.casefold() for text in split.values()]
    for letter in others:
        yield Corruption("another choice", letter)
        yield Corruption("another choice", f"{letter}. {split[letter]}")
        if texts.count(split[letter].casefold()) == 1:
            yield Corruption("another choice", split[letter])
        yield Corruption("two choices", f"{right}{letter}")
        yield Corruption("letter and text disagree", f"{right}. {split[letter]}")
    if others:
        both = [*split], [*split.values()]
        several = [joint.join(each) for joint in (", ", " ", " and ", "\n", "/") for each in both]
        yield from (Corruption("every choice", text) for text in (*several, "\n".join(sample.choices)))
    yield Corruption("no choice", "Z" if "Z" not in split else "Q")


def texts(sample: Sample) -> Iterator[Corruption]:
    """A letter lost, doubled or changed, a word more, the answer twice."""
    answer = bare(sample.answer)
    for number in [rival_number(answer)] if any(letter.isdigit() for letter in answer) else []:
        yield Corruption("digit changed", number)
    if len(answer) > 1:
        yield Corruption("letter lost", answer[:-2] + answer[-1])
        yield Corruption("letters swapped", answer[-1] + answer[1:-1] + answer[0])
    yield Corruption("letter changed", answer[:-1] + ("x" if answer[-1:] != "x" else "y"))
    yield from (Corruption("word more", text) for text in (f"{answer} {RIVAL}", f"{RIVAL} {answer}"))
    yield Corruption("twice", f"{answer}, {answer}")
    yield Corruption("another", RIVAL)
    for word in () if _NUMBERED.match(answer) else answer.split()[1:]:
        yield Corruption("word alone", word)


def lists(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    """An element missing, more, repeated, replaced; another order where it counts."""
    if not (parts := elements(sample.answer)):
        return
    digits = "".join(letter for part in parts for letter in part if letter.isdigit())
    rival = RIVAL if any(read_quantity(part) is None for part in parts) else f"9{digits}"[:18]
    if len(parts) > 1:
        yield from (Corruption("element missing", ", ".join(some)) for some in (parts[1:], parts[:-1], parts[:1]))
        yield Corruption("joined by or", " or ".join(parts))
        yield Corruption("joined by or", ", ".join(parts[:-1]) + f" or {parts[-1]}")
    yield Corruption("element more", ", ".join((*parts, rival)))
    yield Corruption("element repeated", ", ".join((*parts, parts[0])))
    yield Corruption("element replaced", ", ".join((rival, *parts[1:])))
    yield Corruption("element denied", ", ".join((f"not {parts[0]}", *parts[1:])))
    for order in (parts[::-1], (*parts[1:], parts[0])) if grader.is_ordered else ():
        pairs = zip(order, parts, strict=True)
        # a list that reads the same in both orders has no wrong one
        if not all(same_list(element, expected, tolerance=grader.tolerance) for element, expected in pairs):
            yield Corruption("another order", ", ".join(order))


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Discrimination:
    """Wrong answers, of ``n_corrupted``, that a grader accepted, and spellings of the right one that it refused."""

    accepted: tuple[Corruption, ...]
    refused: tuple[str, ...]
    n_corrupted: int

    @property
    def holds(self) -> bool:
        return not self.accepted and not self.refused

    def __str__(self) -> str:
        wrong = [f"accepts {corruption.text[:60]!r} ({corruption.kind})" for corruption in self.accepted[:_SHOWN]]
        right = [f"refuses {text[:60]!r}" for text in self.refused[:_SHOWN]]
        return "; ".join([*right, *wrong]) or f"tells its answer from {self.n_corrupted} corrupted ones"


def measure_discrimination(sample: Sample, grader: Grader) -> Discrimination:
    """Tries the grader on every corruption and every honest spelling of the sample's answer, without other answers."""
    grader, sample = replace(grader, accepted=()), with_choices(sample) if grader.kind == "choice" else sample
    wrong = corruptions(sample, grader)
    accepted = tuple(corruption for corruption in wrong if grade(corruption.text, sample, grader).right)
    refused = tuple(text for text in correct_spellings(sample, grader) if not grade(text, sample, grader).right)
    return Discrimination(accepted, refused, len(wrong))


def require_discrimination(sample: Sample, grader: Grader) -> None:
    """Require that the grader tells the answers apart. Raises ``RowError`` (grader_cannot_tell) with the evidence."""
    if not (discrimination := measure_discrimination(sample, grader)).holds:
        raise RowError(Reason.GRADER_CANNOT_TELL, f"the {grader.kind} grader {discrimination}")


def correct_spellings(sample: Sample, grader: Grader) -> tuple[str, ...]:
    """The sample's answer as models spell it."""
    answer = sample.answer.strip()
    spellings = [answer, f" {answer}\n", f"The answer is {answer}", f"**{answer}**"]
    match grader.kind:
        case "choice":
            letter = sample.answer
            texts_of = dict(map(split_choice, sample.choices))
            if letter in texts_of:
                spellings += [f"({letter})", f"{letter}. {texts_of[letter]}", f"Option {letter}", letter.lower()]
        case "list":
            parts = elements(answer)
            spellings += [", ".join(parts), "\n".join(f"- {part}" for part in parts) if len(parts) > 1 else answer]
        case "box":
            box = read_box(answer)
            spellings += [spelled(box), f'{{"bbox": {spelled(box)}}}'] if box else []
        case "number" | "maths":
            spellings.append(rf"\boxed{{{answer}}}")
        case "text" | "judged":
            spellings += [answer.upper() if answer.isascii() else answer, answer if '"' in answer else f'"{answer}"']
    return tuple(dict.fromkeys(spellings))
