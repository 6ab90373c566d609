"""Corrupted answers: for every kind of answer, texts that look like it and are wrong.

    for corruption in corruptions(sample, grader):
        print(corruption.kind, corruption.text)

They are deterministic. What would be right after all (a digit changed within the tolerance) is not among them. Every
kind of answer is also denied, hedged, doubled, drowned and disguised.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.records import Grader, Sample
from pipelines.verification.grading.corrupted_values import (
    Corruption,
    boxes,
    expressions,
    numbers,
    rival_box,
    rival_number,
)
from pipelines.verification.grading.corrupted_words import RIVAL, choices, lists, rival_choice, texts
from pipelines.verification.grading.text_match import same_words
from pipelines.verification.grading.word_lists import read_words

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
    candidates = (*_own_kind(sample, grader), *phrased(sample.answer, _rival(sample, grader)))
    return tuple(
        {candidate.text: candidate for candidate in candidates if not _is_expected(candidate.text, sample)}.values()
    )


def _own_kind(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    match grader.kind:
        case "choice":
            yield from choices(sample)
        case "number":
            yield from numbers(sample, grader)
        case "maths":
            yield from expressions(sample)
        case "list":
            yield from lists(sample, grader)
        case "box":
            yield from boxes(sample, grader)
        case "text" | "judged":
            yield from texts(sample)


def _rival(sample: Sample, grader: Grader) -> str:
    match grader.kind:
        case "choice":
            return rival_choice(sample)
        case "number" | "maths":
            return rival_number(sample.answer)
        case "box":
            return rival_box(sample.answer)
        case _:
            return RIVAL


def _is_expected(text: str, sample: Sample) -> bool:
    expected = [sample.answer, *(spelling for spelling in sample.choices if spelling.startswith(sample.answer[:1]))]
    return any(
        same_words(text[:4000], spelling) or same_words(text[:4000], spelling[2:].strip()) for spelling in expected
    )
