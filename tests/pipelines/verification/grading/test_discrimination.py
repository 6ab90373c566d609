"""Whether graders tell the right answer from corrupted ones, and what is said when they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings, strategies as st

from darkroom.pipelines.records import Grader, ImageRef, Sample, Truth
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.verification.grading import (
    corruptions,
    grade,
    grader_of,
    measure_discrimination,
    require_discrimination,
)
from tests.matrices import fewer_quickly


def asked(
    answer: str, question: str = "What is it?", *, choices: tuple[str, ...] = (), category: str = "object"
) -> Sample:
    image = ImageRef("a" * 64, 1000, 800, "RGB", "PNG")
    return Sample("s" * 64, "test", "1", "", (image,), question, choices, answer, Truth(), category)


COLOURS = ("A. red", "B. green", "C. all of the above")
USABLE = [
    asked("A", choices=COLOURS), asked("C", choices=COLOURS), asked("B", choices=("A. 1", "B. 2", "C. 12")),
    asked("12"), asked("0"), asked("-3.5"), asked("1,200"), asked("1/3"), asked("3.14159"), asked("$5"), asked("45°"),
    asked("12 cm", "How wide is it in centimetres?"), asked("12%", "What percentage?"),
    asked("3 apples", "How many apples?"),
    asked("No. 019", "Which number is on the sign?"),
    asked("STOP"), asked("a red bicycle"), asked("none"), asked("007"), asked("no"), asked("A"), asked("5 or 6"),
    asked("red, green and blue"), asked("red, green, blue", "From left to right?"), asked("1, 2, 3"),
    asked("[3, 2, 1]"),
    asked("x^2+1", category="maths"), asked(r"2\sqrt{3}"), asked("(2,3)", category="maths"),
    asked("x=5", category="maths"),
    asked("[100, 100, 300, 250]", "Where is it?"), asked("[0.1, 0.2, 0.5, 0.6]", "Its bounding box, in fractions?"),
    asked("A man in a red coat is opening the door."), asked("The sign says that dogs are not allowed in here."),
]  # fmt: skip


@pytest.mark.parametrize("sample", USABLE, ids=lambda one: one.answer)
def test_the_grader_of_an_answer_tells_it_from_corrupted_ones(sample):
    told = measure_discrimination(sample, grader_of(sample))
    assert told.holds, str(told)
    assert told.n_corrupted >= 40


@pytest.mark.parametrize("sample", USABLE, ids=lambda one: one.answer)
def test_corruptions_are_the_same_every_time_and_none_twice(sample):
    made = corruptions(sample, grader_of(sample))
    assert made == corruptions(sample, grader_of(sample))
    assert len({one.text for one in made}) == len(made)


UNUSABLE = [
    ("whole image", asked("[0, 0, 1000, 700]", "Its bounding box?"), Grader("box", 0.5)),
    ("whole image", asked("[100, 100, 300, 250]", "Its bounding box?"), Grader("box", 0.01)),
    ("own answer", replace(asked("A", choices=("A. red", "B. green")), answer="E"), Grader("choice")),
    ("own answer", asked(""), Grader("text")),
    ("own answer", asked("red"), Grader("number")),
    ("own answer", asked("red"), Grader("box", 0.5)),
    ("own answer", asked("red"), Grader("choice")),
    ("own answer", asked("x" * 5000), Grader("text")),
]


@pytest.mark.parametrize(("why", "sample", "grader"), UNUSABLE, ids=range(len(UNUSABLE)))
def test_a_row_whose_grader_cannot_tell_is_rejected_with_the_evidence(why, sample, grader):
    told = measure_discrimination(sample, grader)
    assert why in {one.kind for one in told.accepted} or (told.refused and why == "own answer")
    with pytest.raises(RowError, match=f"the {grader.kind} grader (accepts|refuses)") as raised:
        require_discrimination(sample, grader)
    assert raised.value.reason is Reason.GRADER_CANNOT_TELL
    assert raised.value.reason.disposition == "rejected"


def test_a_number_within_its_tolerance_is_no_corruption():
    sample, grader = asked("100"), Grader("number", tolerance=0.05)
    assert "101" not in {one.text for one in corruptions(sample, grader)}
    assert "101" in {one.text for one in corruptions(sample, Grader("number"))}
    assert grade("101", sample, grader).right


def test_a_grader_so_lax_that_other_numbers_pass_has_only_farther_ones_as_corruptions():
    assert measure_discrimination(asked("100"), Grader("number", tolerance=0.5)).holds


ODD = st.text("0123456789.,;-+/%$ xy()[]{}\\^=andorA", max_size=30)


@pytest.mark.parametrize("kind", ["choice", "number", "text", "list", "maths", "box", "judged"])
@settings(max_examples=fewer_quickly(25), deadline=None)
@given(answer=st.text(max_size=30) | ODD)
@example(answer="{1,2,}")
def test_any_answer_is_tried_without_an_error(kind, answer):
    sample = asked(answer)
    assert isinstance(measure_discrimination(sample, Grader(kind)).holds, bool)
    assert grader_of(sample).kind != "choice"
