"""Corrupted choices, texts and lists: another choice, all of them, a letter lost, an element missing or too many."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.records import Grader, Sample
from pipelines.records.answers import split_choice
from pipelines.verification.grading.answer_text import bare
from pipelines.verification.grading.corrupted_values import Corruption, rival_number
from pipelines.verification.grading.lists import elements, same_list
from pipelines.verification.grading.quantity import read_quantity
from pipelines.verification.grading.text_match import chosen_letter

RIVAL = "zanzibar"
"""A word that answers no question."""


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
