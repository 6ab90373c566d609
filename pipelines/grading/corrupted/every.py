"""All corruptions of a sample's answer, by the kind of its grader."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.grading.corrupted.base import Corruption
from pipelines.grading.corrupted.boxed import boxes, rival_box
from pipelines.grading.corrupted.phrased import phrased
from pipelines.grading.corrupted.valued import expressions, numbers, rival_number
from pipelines.grading.corrupted.worded import RIVAL, choices, lists, rival_choice, texts
from pipelines.grading.words import same_words
from pipelines.records import Grader, Sample


def corruptions(sample: Sample, grader: Grader) -> tuple[Corruption, ...]:
    """Wrong answers, each once. Those that are the expected answer itself ("All of them", asked for) are left out."""
    found = (*_own_kind(sample, grader), *phrased(sample.answer, _rival(sample, grader)))
    return tuple({one.text: one for one in found if not _is_expected(one.text, sample)}.values())


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
    expected = [sample.answer, *(one for one in sample.choices if one.startswith(sample.answer[:1]))]
    return any(same_words(text[:4000], one) or same_words(text[:4000], one[2:].strip()) for one in expected)
