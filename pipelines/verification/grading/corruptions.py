"""Corrupted answers: for every kind of answer, texts that look like it and are wrong.

    for corruption in corruptions(sample, grader):
        print(corruption.kind, corruption.text)

They are deterministic. What would be right after all (a digit changed within the tolerance) is not among them. Every
kind of answer is also denied, hedged, doubled, drowned and disguised.
"""

from collections.abc import Iterator

from darkroom.pipelines.records import Grader, Sample
from darkroom.pipelines.records.answers import split_choice
from darkroom.pipelines.verification.grading.answer_text import bare
from darkroom.pipelines.verification.grading.choices import chosen_letter
from darkroom.pipelines.verification.grading.corrupted_values import (
    Corruption,
    boxes,
    expressions,
    numbers,
    rival_box,
    rival_number,
)
from darkroom.pipelines.verification.grading.lists import elements, same_list
from darkroom.pipelines.verification.grading.quantity import read_quantity
from darkroom.pipelines.verification.grading.text_match import same_words
from darkroom.pipelines.verification.grading.word_lists import read_words

RIVAL = "zanzibar"
"""A word that answers no question."""
LONG = 100_000
"""Characters of the longest corruption."""
_DATA = read_words(__file__)
_DISGUISES = {kind: str.maketrans(letters["from"], letters["to"]) for kind, letters in _DATA["disguises"].items()}


def phrased(answer: str, rival: str) -> Iterator[Corruption]:
    """What suits every kind. ``rival`` is another answer of the same kind."""
    for kind in ("denied", "hedged"):
        yield from (Corruption(kind, form.format(answer, rival)) for form in _DATA[kind])
    yield from (Corruption(kind, text) for kind, several in _DATA["alone"].items() for text in several)
    yield from _long(answer)
    yield from _disguised(answer)


def _long(answer: str) -> Iterator[Corruption]:
    yield Corruption("long", answer + " " * LONG)
    yield Corruption("long", (f"{answer} " * (LONG // (len(answer) + 1) + 1))[:LONG])
    yield Corruption("long", f"{answer}. " + "x" * LONG)
    yield Corruption("long", "x" * LONG)


def _disguised(answer: str) -> Iterator[Corruption]:
    """Unseen letters and look-alikes; fullwidth letters are the same letters and not among them."""
    yield Corruption("zero-width", f"{answer[:1]}\u200b{answer[1:]}")
    yield Corruption("zero-width", f"{answer}\u200d")
    yield Corruption("direction", f"\u202e{answer[::-1]}")
    yield Corruption("direction", f"{answer}\u2066")
    yield Corruption("tag", f"{answer}\U000e0041")
    yield Corruption("surrogate", f"{answer}\ud800")
    for kind, table in _DISGUISES.items():
        if (disguised := answer.translate(table)) != answer:
            yield Corruption(kind, disguised)


def corruptions(sample: Sample, grader: Grader) -> tuple[Corruption, ...]:
    """Wrong answers, each once. Those that are the expected answer itself ("All of them", asked for) are left out."""
    of_kind, rival = _of_kind(sample, grader)
    candidates = (*of_kind, *phrased(sample.answer, rival))
    return tuple(
        {candidate.text: candidate for candidate in candidates if not _is_expected(candidate.text, sample)}.values()
    )


def _of_kind(sample: Sample, grader: Grader) -> tuple[Iterator[Corruption], str]:
    """The corruptions of a kind of answer, and another answer of that kind."""
    match grader.kind:
        case "choice":
            return choices(sample), rival_choice(sample)
        case "number":
            return numbers(sample, grader), rival_number(sample.answer)
        case "maths":
            return expressions(sample), rival_number(sample.answer)
        case "list":
            return lists(sample, grader), RIVAL
        case "box":
            return boxes(sample, grader), rival_box(sample.answer)
        case "text" | "judged":
            return texts(sample), RIVAL


def _is_expected(text: str, sample: Sample) -> bool:
    expected = [sample.answer, *(spelling for spelling in sample.choices if spelling.startswith(sample.answer[:1]))]
    return any(
        same_words(text[:4000], spelling) or same_words(text[:4000], spelling[2:].strip()) for spelling in expected
    )


def choices(sample: Sample) -> Iterator[Corruption]:
    """Every other choice by letter and by text, a letter without a choice, several at once."""
    right = chosen_letter(sample.answer, sample.choices)
    split = dict(map(split_choice, sample.choices))
    others = [letter for letter in split if letter != right]
    texts = [text.casefold() for text in split.values()]
    for letter in others:
        yield Corruption("another choice", letter)
        yield Corruption("another choice", f"{letter}. {split[letter]}")
        if texts.count(split[letter].casefold()) == 1:
            yield Corruption("another choice", split[letter])
        yield Corruption("two choices", f"{right}{letter}")
        yield Corruption("letter and text disagree", f"{right}. {split[letter]}")
    if others:
        for joint in (", ", " ", " and ", "\n", "/"):
            yield Corruption("every choice", joint.join(split))
            yield Corruption("every choice", joint.join(split.values()))
        yield Corruption("every choice", "\n".join(sample.choices))
    yield Corruption("no choice", "Z" if "Z" not in split else "Q")


def rival_choice(sample: Sample) -> str:
    """The first other letter."""
    right = chosen_letter(sample.answer, sample.choices)
    return next((letter for letter, _ in map(split_choice, sample.choices) if letter != right), "Z")


def texts(sample: Sample) -> Iterator[Corruption]:
    """A letter lost, doubled or changed, a word more, the answer twice."""
    answer = bare(sample.answer)
    for number in [rival_number(answer)] if any(letter.isdigit() for letter in answer) else []:
        yield Corruption("digit changed", number)
    if len(answer) > 1:
        yield Corruption("letter lost", answer[:-2] + answer[-1])
        yield Corruption("letters swapped", answer[-1] + answer[1:-1] + answer[0])
    yield Corruption("letter changed", answer[:-1] + ("x" if answer[-1:] != "x" else "y"))
    yield Corruption("word more", f"{answer} {RIVAL}")
    yield Corruption("word more", f"{RIVAL} {answer}")
    yield Corruption("twice", f"{answer}, {answer}")
    yield Corruption("another", RIVAL)
    for word in answer.split()[1:]:
        yield Corruption("word alone", word)


def lists(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    """An element missing, more, repeated, replaced; another order where it counts."""
    parts = elements(sample.answer)
    if not parts:
        return
    rival = rival_element(parts)
    if len(parts) > 1:
        yield Corruption("element missing", ", ".join(parts[1:]))
        yield Corruption("element missing", ", ".join(parts[:-1]))
        yield Corruption("element missing", parts[0])
        yield Corruption("joined by or", " or ".join(parts))
        yield Corruption("joined by or", ", ".join(parts[:-1]) + f" or {parts[-1]}")
    yield Corruption("element more", ", ".join((*parts, rival)))
    yield Corruption("element repeated", ", ".join((*parts, parts[0])))
    yield Corruption("element replaced", ", ".join((rival, *parts[1:])))
    yield Corruption("element denied", ", ".join((f"not {parts[0]}", *parts[1:])))
    yield from _permuted(sample, parts, grader)


def rival_element(parts: tuple[str, ...]) -> str:
    """An element that the list does not have."""
    if any(read_quantity(part) is None for part in parts):
        return RIVAL
    return f"9{''.join(letter for part in parts for letter in part if letter.isdigit())}"[:18]


def _permuted(sample: Sample, parts: tuple[str, ...], grader: Grader) -> Iterator[Corruption]:
    orders = (parts[::-1], (*parts[1:], parts[0]))
    for order in orders if grader.is_ordered else ():
        text = ", ".join(order)
        # a list that reads the same in both orders has no wrong one
        if not all(
            same_list(element, expected, tolerance=grader.tolerance)
            for element, expected in zip(order, parts, strict=True)
        ):
            yield Corruption("another order", text)
