"""Which grader an answer asks for."""

from __future__ import annotations

import json

import pytest

from darkroom.pipelines.records import Grader, ImageRef, Sample, Truth, TruthBox
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.verification.grading import grade, grader_of


def asked(
    answer: str, question: str = "What is it?", *, category: str = "object", details=None, boxes=(), choices=()
) -> Sample:
    truth = Truth(boxes=boxes, details=None if details is None else json.dumps(details))
    image = ImageRef("a" * 64, 1000, 800, "RGB", "PNG")
    return Sample("s" * 64, "test", "1", "", (image,), question, choices, answer, truth, category)


@pytest.mark.parametrize(
    ("kind", "answer", "question"),
    [
        ("number", "12", "How many?"), ("number", "-3.5", "What?"), ("number", "1,200", "What?"),
        ("number", "$5", "What does it cost?"), ("number", r"\frac{1}{2}", "What share?"), ("number", "1990", "When?"),
        ("text", "STOP", "What does it say?"), ("text", "007", "Which code?"), ("text", "555-0123", "Which number?"),
        ("text", "B12", "Which seat?"), ("text", "12:30", "What time is it?"), ("text", "A4", "Which road?"),
        ("text", "March 3, 2020", "When was it?"),
        ("text", "4 June", "On which day?"), ("text", "Paris, France", "Which city is it?"),
        ("text", "yes", "Is it open?"), ("text", "x", "Which letter?"), ("text", "a red bicycle", "What is it?"),
        ("list", "red, green and blue", "Which colours?"), ("list", "3, 5", "Which numbers?"),
        ("list", "black and white", "Which colours?"), ("list", "salt; pepper", "Which spices?"),
        ("maths", r"2\sqrt{3}", "How long?"), ("maths", "2x+1", "Solve the equation for y."),
        ("maths", "36 - 9π", "Area?"),
        ("maths", "(2,3)", "Which point solves the equation?"), ("maths", r"x^2", "What?"),
        ("box", "[10, 20, 110, 220]", "Give the bounding box of the sign."),
        ("box", "(10, 20, 110, 220)", "Where is it?"),
        ("list", "[10, 20, 110, 220]", "Which numbers?"), ("list", "1, 2, 3, 4", "Which numbers are in the box?"),
        ("judged", "A man in a red coat is opening the door.", "What happens?"),
    ],
)  # fmt: skip
def test_an_answer_asks_for_the_grader_of_its_kind(kind, answer, question):
    assert grader_of(asked(answer, question)).kind == kind


@pytest.mark.parametrize("answer", ["∞", "Infinity", "-inf", r"\infty"])
def test_infinity_is_a_number_unless_a_text_is_read(answer: str):
    assert grader_of(asked(answer, "What is the limit?")).kind == "number"
    assert grader_of(asked(answer, "What does the sign say?", category="OCR")).kind != "number"


def test_a_version_is_a_text_whose_last_zero_counts():
    sample = asked("1.10", "Which version of the software is shown?")
    assert grader_of(sample).kind == "text"
    assert grade("v1.10", sample, grader_of(sample)).right
    assert not grade("1.1", sample, grader_of(sample)).right


@pytest.mark.parametrize(
    ("kind", "answer", "question"),
    [
        ("maths", "x = 2 or x = -3", "What are the roots?"), ("maths", "[[1, 2], [3, 4]]", "Which matrix is it?"),
        ("maths", "ℝ", "What is the domain?"), ("text", "60 x 80 cm", "How large is it?"),
        ("text", "H2O", "Which chemical formula is it?"), ("number", "3,50 €", "What does it cost?"),
        ("text", "1.10", "What does the sign say?"), ("number", "half", "How much of it is red?"),
    ],
)  # fmt: skip
def test_a_kind_of_answer_without_a_rule_of_its_own_has_the_rule_that_reads_it(kind, answer, question):
    assert grader_of(asked(answer, question)).kind == kind


def test_each_of_several_letters_counts_and_none_more():
    sample = asked("A, C", choices=("A. whale", "B. salmon", "C. bat"))
    assert all(grade(answer, sample, grader_of(sample)).right for answer in ("A and C", "CA", "whale, bat"))
    assert not any(grade(answer, sample, grader_of(sample)).right for answer in ("A", "A, B, C", "A or C", "B, C"))


@pytest.mark.parametrize(("answer", "right"), [("inf", True), ("+∞", True), ("-∞", False), ("1e400", False)])
def test_infinity_is_no_number_however_large(answer: str, right: bool):
    sample = asked("∞", "What is the limit?")
    assert grade(answer, sample, grader_of(sample)).right is right


def test_choices_ask_for_their_letters_whatever_they_say():
    assert grader_of(asked("A", choices=("A. 12", "B. 13"))) == Grader("choice")


def test_corners_that_are_a_box_of_the_truth_are_a_box():
    sample = asked("[10, 20, 110, 220]", boxes=(TruthBox("sign", 10, 20, 110, 220),))
    assert grader_of(sample) == Grader("box", 0.5)


@pytest.mark.parametrize(
    ("question", "ordered"),
    [
        ("Name the colours from left to right.", True),
        ("Which colours are there, in order?", True),
        ("List them in ascending order.", True),
        ("Which colours are there, clockwise?", True),
        ("Sort the colours.", True),
        ("Which colours are there?", False),
        ("Which colours are on the left?", False),
    ],
)
def test_the_order_of_a_list_counts_if_the_question_asks_for_one(question, ordered):
    assert grader_of(asked("red, green, blue", question)) == Grader("list", is_ordered=ordered)


def test_the_unit_of_an_answer_without_one_is_the_one_that_the_question_names():
    assert grader_of(asked("12 cm", "How wide is it in centimetres?")).unit == "cm"
    assert grader_of(asked("12 cm", "How wide is it?")).unit == ""


def test_text_that_is_read_is_not_judged_however_long_it_is():
    assert grader_of(asked("All dogs must be kept on a lead at all times in here.", category="OCR")).kind == "text"


def test_details_hold_the_tolerance_the_unit_or_the_grader():
    assert grader_of(asked("12", details={"tolerance": 0.05, "unit": "kg"})) == Grader("number", 0.05, "kg")
    told = {"grader": {"kind": "list", "tolerance": 0.0, "unit": "", "is_ordered": True}}
    assert grader_of(asked("12", details=told)) == Grader("list", is_ordered=True)
    assert grader_of(asked("12", details={"grader": {"kind": "judged"}})) == Grader("judged")


@pytest.mark.parametrize(
    "details",
    [
        {"grader": {"kind": "magic"}},
        {"grader": {"kind": "text", "more": 1}},
        {"grader": "text"},
        {"grader": None},
        {"grader": {"kind": "number", "tolerance": 1.5}},
        {"tolerance": -0.1},
        {"tolerance": "much"},
        {"tolerance": float("nan")},
    ],
)
def test_details_that_are_no_grader_are_the_rows_error(details):
    with pytest.raises(RowError, match="malformed_row"):
        grader_of(asked("12", details=details))
