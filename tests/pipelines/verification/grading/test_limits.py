"""Where the rules of reading begin and end: one step within, one beyond."""

from __future__ import annotations

import pytest

from darkroom.pipelines.records import Sample, Truth
from darkroom.pipelines.verification.grading.corruptions import texts
from darkroom.pipelines.verification.grading.maths import MAX_DEPTH, read_expression
from darkroom.pipelines.verification.grading.number_words import in_digits
from darkroom.pipelines.verification.grading.numeric import none_as_zero


@pytest.mark.parametrize(("depth", "is_read"), [(8, True), (9, False)])
def test_a_formula_is_read_to_a_depth(depth: int, is_read: bool) -> None:
    assert MAX_DEPTH == 8
    assert (read_expression("(" * depth + "x+1" + ")" * depth) is not None) == is_read


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("eighteen ninety-five", "1895"),
        ("thirteen ten", "1310"),
        ("twenty ten", "2010"),
        ("twelve ten", "twelve ten"),
        ("thirty forty", "thirty forty"),
        ("nineteen five", "nineteen five"),
    ],
)
def test_two_numbers_are_a_year_from_the_thirteenth_hundred_to_the_twentieth(words: str, digits: str) -> None:
    assert in_digits(words) == digits


def test_only_the_first_none_is_a_count() -> None:
    assert none_as_zero("no dogs and no cats", "0") == "0 dogs and no cats"
    assert none_as_zero("no dogs", "3") == "no dogs"


@pytest.mark.parametrize(("answer", "changed"), [("fax", "fay"), ("x", "y"), ("fox y", "fox x"), ("bus", "bux")])
def test_a_changed_letter_is_another_one(answer: str, changed: str) -> None:
    sample = Sample("s" * 64, "test", "1", "", (), "What is it?", (), answer, Truth(), "object")
    assert {each.text for each in texts(sample) if each.kind == "letter changed"} == {changed}
