"""What holds of graders for any answer."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from hypothesis import example, given, settings, strategies as st

from darkroom.pipelines.records import Grader, ImageRef, Sample, Truth, from_row, to_row
from darkroom.pipelines.records.geometry import iou
from darkroom.pipelines.records.samples import with_context
from darkroom.pipelines.verification.grading import grade, grader_of, maths
from darkroom.pipelines.verification.grading.boxes import read_box, same_box
from darkroom.pipelines.verification.grading.lists import same_list
from darkroom.pipelines.verification.grading.numeric import in_digits
from darkroom.pipelines.verification.grading.text_match import same_words

CHOICES = ("A. red", "B. green", "C. blue", "D. a cat")
ANSWERS = {
    "choice": "A",
    "number": "12",
    "text": "red bicycle",
    "list": "red, green and blue",
    "maths": "2x+1",
    "box": "[100, 100, 300, 250]",
    "judged": "A man is opening the door.",
}
SPELLED = ("{}", "({})", "{}.", "Option {}", "The answer is {}", "**{}**", r"\boxed{{{}}}", " {}\n", "answer: {}")
IMAGE = ImageRef("a" * 64, 1000, 800, "RGB", "PNG")

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

word = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
no_word = st.text("bcfghjklnpqtvwxz", min_size=1, max_size=8)
"""Not of all letters: hypothesis takes words from our source too, and "I select" or "Mr" may stand before an answer."""
corners = st.tuples(*[st.integers(0, 900)] * 2, *[st.integers(1, 900)] * 2).map(
    lambda box: (box[0], box[1], box[0] + box[2], box[1] + box[3])
)


def asked(kind: str, answer: str = "") -> Sample:
    choices, answer = CHOICES if kind == "choice" else (), answer or ANSWERS[kind]
    return Sample("s" * 64, "test", "1", "", (IMAGE,), "What is it?", choices, answer, Truth(), "object")


def is_right(said: str, kind: str, answer: str = "", **grader: object) -> bool:
    return grade(said, asked(kind, answer), Grader(kind, **grader)).right


@pytest.mark.parametrize("kind", ANSWERS)
@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=300))
@example(text="\ud800")
@example(text="{" * 300)
@example(text="[" * 300)
@example(text=", " * 150)
def test_no_text_breaks_a_grader_and_no_random_text_is_right(kind, text):
    # the chance of hitting the answer itself is none but for single letters
    assert not grade(text, asked(kind), Grader(kind)).right or same_words(text, ANSWERS[kind]) or kind == "choice"


@pytest.mark.parametrize("kind", ANSWERS)
@settings(max_examples=5, deadline=None)
@given(letter=st.characters())
def test_a_hundred_thousand_letters_are_refused_at_once(kind, letter):
    before = time.process_time()
    assert not is_right(letter * 100_000, kind)
    assert not is_right(ANSWERS[kind] + letter * 100_000, kind)
    assert time.process_time() - before < 0.5


@given(st.lists(word, min_size=1, max_size=6))
def test_other_words_are_never_the_text(words):
    said = " ".join(words)
    assert is_right(said, "text") is (same_words(said, "red bicycle") and words[-1] == "bicycle")


@given(st.lists(no_word, min_size=1, max_size=6))
def test_a_text_behind_what_begins_no_sentence_is_wrong(words):
    assert not is_right(f"{' '.join(words)} red bicycle", "text")


@given(word.filter(lambda text: text not in ("a", "an", "the")), word)
@example(one="sign", other="not")
def test_two_words_joined_are_neither(one, other):
    """An article is no word of its own: "an x" is "x"."""
    for said in (f"{one} or {other}", f"{one}, but maybe {other}", f"not {one}", f"{one} {other}", f"{one}/{other}"):
        assert not is_right(said, "text", one)


@pytest.mark.parametrize("letter", ["B", "C", "D"])
@pytest.mark.parametrize("spelled", SPELLED)
def test_every_other_letter_is_wrong_however_it_is_spelled(letter, spelled):
    for said in (spelled.format(letter), spelled.format(letter.lower())):
        assert not is_right(said, "choice")
        assert is_right(said, "choice", letter)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_another_number_is_wrong_and_the_same_one_right(one, other):
    assert is_right(str(one), "number", str(other)) is (one == other)
    assert is_right(f"{one:,}", "number", str(one))


@given(st.integers(1, 10**9), st.integers(0, 10**6), st.floats(0, 0.5))
def test_a_tolerance_is_a_share_of_the_right_number(expected, apart, tolerance):
    said = is_right(str(expected + apart), "number", str(expected), tolerance=tolerance)
    if abs(apart / expected - tolerance) > 1e-9:
        assert said is (apart / expected < tolerance)


@given(st.integers(0, 99))
def test_number_words_are_numbers(number):
    spelled = ONES[number] if number < 20 else TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")
    assert in_digits(f"{spelled} birds") == f"{number} birds"
    assert is_right(spelled.capitalize(), "number", str(number))


@given(corners, corners)
def test_the_overlap_of_boxes_is_symmetric_and_within_bounds(one, other):
    assert iou(one, other) == iou(other, one)
    assert 0 <= iou(one, other) <= 1
    assert iou(one, one) == 1


@given(corners, corners, st.floats(0.1, 1))
def test_a_box_is_right_from_its_overlap_on(one, other, least):
    said, expected = str(list(one)), str(list(other))
    if max(one) > 1 and max(other) > 1:
        assert same_box(said, expected) == iou(one, other)
        assert is_right(said, "box", expected, tolerance=least) is (iou(one, other) >= least)


def test_a_box_grader_without_a_bound_does_not_accept_whatever_touches_the_box():
    assert not is_right("[290, 240, 400, 400]", "box")


def test_a_box_with_a_sentence_for_its_label_is_none():
    """What stands beside the box may deny it."""
    for n_marks, box in ((60, (10, 20, 30, 40)), (61, None), (600, None)):
        label = "sign " * (n_marks // 5) + "s" * (n_marks % 5)
        assert read_box(f'{{"bbox_2d": [10, 20, 30, 40], "label": "{label}"}}') == box


@pytest.mark.parametrize(
    ("tex", "rooted"),
    [
        (r"\sqrt (x)", r"\sqrt{x}"),
        (r"\sqrt(x", r"\sqrt(x"),
        (r"(\sqrt(x)", r"(\sqrt{x}"),
        (r"\sqrt(\sqrt(x)+1)+\sqrt (2)", r"\sqrt{\sqrt{x}+1}+\sqrt{2}"),
    ],
)
def test_a_root_takes_its_parenthesis_if_that_is_closed(tex, rooted):
    assert maths._rooted(tex) == rooted


def test_what_an_answer_quotes_of_the_question_denies_nothing():
    for question, right in (
        ("How many people chose 'never' in 2010?", True),
        ("How many people voted in 2010?", False),
    ):
        sample = replace(asked("number", "37"), question=question)
        assert grade("37 people chose 'never'", sample, Grader("number")).right is right


@given(
    st.lists(
        st.sampled_from(["NaN", "Infinity", "-Infinity", "1e999", "null", "true", '"5"', "{}", "[]", "5"]), max_size=6
    )
)
def test_what_is_no_number_is_no_corner(sides):
    if set(sides) - {"5"}:
        assert read_box(f"[{', '.join(sides)}]") is None
        assert read_box(f'{{"bbox": [{", ".join(sides)}]}}') is None


@given(
    st.lists(
        word.filter(lambda one: one not in ("and", "both", "or", "a", "an", "the")), min_size=2, max_size=6, unique=True
    ),
    st.randoms(),
)
def test_a_list_is_right_in_any_order_unless_the_order_counts(words, chance):
    mixed = chance.sample(words, len(words))
    said, expected = ", ".join(mixed), ", ".join(words)
    assert same_list(said, expected)
    assert same_list(said, expected, is_ordered=True) is (mixed == words)
    assert not same_list(", ".join(words[1:]), expected)
    assert not same_list(f"{said}, {words[0]}", expected)
    assert not same_list(" or ".join(mixed), expected)


def with_accepted(answer: str, *accepted: str, question: str = "What is it?", category: str = "object") -> Sample:
    truth = Truth(details=json.dumps({"accepted_answers": accepted}))
    return Sample("s", "test", "1", "", (), question, (), answer, truth, category)


@pytest.mark.parametrize(
    ("said", "right"), [("red", True), ("crimson", True), ("12.0", True), ("0.5", True), ("blue", False), ("13", False)]
)
def test_every_accepted_answer_is_right_by_the_rule_that_fits_it(said, right):
    sample = with_accepted("red", "crimson", "12", r"\frac{1}{2}")
    assert grade(said, sample).right is right
    assert grade(said, sample, grader_of(sample)).right is right
    # as a shipped row has it: without the source's details
    shipped = replace(sample, truth=Truth())
    assert grade(said, shipped, from_row(Grader, to_row(grader_of(sample)))).right is right


@pytest.mark.parametrize("said", ["red or crimson", "red, crimson", "not crimson", "crimson, maybe"])
def test_an_answer_that_hedges_between_accepted_ones_is_wrong(said):
    sample = with_accepted("red", "crimson")
    assert not grade(said, sample, grader_of(sample)).right


def test_a_grader_without_further_answers_is_what_it_was():
    assert to_row(Grader("text")) == {"kind": "text", "tolerance": 0.0, "unit": "", "is_ordered": False}
    assert from_row(Grader, to_row(Grader("text")) | {"accepted": None}) == Grader("text")
    assert to_row(grader_of(with_accepted("red", "crimson")))["accepted"] == ["crimson"]


def test_the_turns_before_a_question_are_no_part_of_its_grading():
    question = with_context(["Is it a cat or a dog?", "a cat", "How many are there?"])
    sample = replace(with_accepted("2"), question=question, truth=Truth())
    assert grade("2 dogs", sample, grader_of(sample)) == grade(
        "2 dogs", replace(sample, question="How many are there?"), grader_of(sample)
    )
