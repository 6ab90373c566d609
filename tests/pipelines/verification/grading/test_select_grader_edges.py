"""The choice of a grader at its edges: how many words, which brackets, which words of the question."""

import json

import pytest

from darkroom.pipelines.records import Grader, ImageRef, Sample, Truth, TruthBox
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.verification.grading import grader_of
from darkroom.pipelines.verification.grading.select_grader import grader_of_accepted

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lamda"]
IT, READ = "What is it?", "What does the sign say?"


def asked(answer: str, question: str = IT, *, category: str = "object", details=None, boxes=()) -> Sample:
    truth = Truth(boxes=boxes, details=None if details is None else json.dumps(details))
    image = ImageRef("a" * 64, 1000, 800, "RGB", "PNG")
    return Sample("s", "test", "1", "", (image,), question, (), answer, truth, category)


@pytest.mark.parametrize(
    ("answer", "question", "kind"),
    [
        # more than ten words, or a sentence of five
        (" ".join(WORDS[:10]), IT, "text"), (" ".join(WORDS), IT, "judged"), (" ".join(WORDS), READ, "text"),
        ("The red car stands there.", IT, "judged"), ("The red car stands there!", IT, "judged"),
        ("The red car stands there", IT, "text"),
        ("The car stands there.", IT, "text"),
        # elements of up to three words
        ("big red car, small blue car", IT, "list"), ("big old red car, small blue car", IT, "text"),
        ("red, blue", "What is written?", "text"),
        # numbers, in words where the question asks for a part or is in that language
        ("12 apples", IT, "number"), ("12 Mill Lane", "Where does he live?", "text"), ("twelve", IT, "text"),
        ("twelve cm", IT, "number"),
        ("half", IT, "text"), ("half", "How much of it?", "number"), ("twelve", "How much of it?", "text"),
        ("五个", "几个?", "number"),
        ("tres", "¿Cuántos hay?", "number"), ("tres", IT, "text"), ("3/8", IT, "number"),
        # times and dates
        ("6 pm", "When?", "text"), ("6 pm", "How long?", "number"), ("4 June", IT, "text"),
        # codes and formulas
        ("1.10", "Which version?", "text"), ("1.10", IT, "number"), ("H2O", "Which compound is it?", "text"),
        # points, intervals, sets of solutions
        ("(2, 3)", IT, "maths"), ("[2, 3]", "Which range of values?", "maths"), ("[2, 3]", IT, "list"),
        ("(2 cm, 3 cm)", IT, "text"),
        ("(2)", IT, "text"), ("x = 2, x = 3", IT, "maths"), ("x = 2", IT, "text"), ("60 x 80 cm", IT, "text"),
        ("60 x 80 cm", "Solve the equation.", "maths"), ("a+b", IT, "text"), ("a+b", "Simplify it.", "maths"),
        # boxes: where a place is asked for in brackets, or corners are
        ("[1,2,3,4]", "Where is it?", "box"), ("1,2,3,4", "Where is it?", "text"), ("[1,2,3,4]", IT, "list"),
        ("1,2,3,4", "Give the bounding box.", "box"), ("[3,2,1,4]", "Give the bounding box.", "list"),
    ],
)  # fmt: skip
def test_answer_and_question_choose_the_grader(answer, question, kind):
    assert grader_of(asked(answer, question)).kind == kind


@pytest.mark.parametrize(
    ("answer", "category", "kind"),
    [
        (" ".join(WORDS), "OCR", "text"), ("a+b", "maths", "maths"), ("a+b", "object", "text"),
        ("∞", "object", "number"), ("∞", "OCR", "maths"),
        ("red, blue", "document", "text"), ("red, blue", "object", "list"),
    ],
)  # fmt: skip
def test_the_category_chooses_too(answer, category, kind):
    assert grader_of(asked(answer, category=category)).kind == kind


def test_only_the_truths_own_corners_are_a_box_that_nobody_asks_for():
    for corners, kind in (((1, 2, 3, 4), "box"), ((1, 2, 3, 5), "list")):
        assert (
            grader_of(asked("[1,2,3,4]", boxes=(TruthBox("other", 5, 6, 7, 8), TruthBox("sign", *corners)))).kind
            == kind
        )


@pytest.mark.parametrize(
    ("answer", "question", "is_ordered"),
    [("red, blue", IT, False), ("red, blue", "In which order?", True), ("[red, blue]", IT, True)],
)
def test_the_order_counts_where_it_is_asked_for_or_written_in_brackets(answer, question, is_ordered):
    assert grader_of(asked(answer, question)) == Grader("list", is_ordered=is_ordered)


@pytest.mark.parametrize(
    ("tolerance", "read"), [(0, 0.0), (0.999, 0.999), ("0.5", 0.5), (1, None), (-0.001, None), (None, None)]
)
def test_a_tolerance_is_a_share_below_one(tolerance, read):
    sample = asked("12", details={"tolerance": tolerance})
    if read is not None:
        assert grader_of(sample) == Grader("number", read)
    else:
        with pytest.raises(RowError, match="a tolerance is a share"):
            grader_of(sample)


def test_the_details_unit_comes_before_the_questions():
    assert grader_of(asked("12 cm", "How wide in cm?", details={"unit": "m"})).unit == "m"


@pytest.mark.parametrize(
    ("answer", "kind", "own"),
    [
        ("12", "number", Grader("number", 0.1, "cm")), ("12", "text", Grader("number", 0.1, "cm")),
        ("x^2", "text", Grader("maths")),
        ("red", "text", Grader("text")), ("red", "list", Grader("text")),
        # no wider rule than the samples' own
        ("a, b", "text", Grader("text", 0.1, "cm")), ("red", "judged", Grader("judged", 0.1, "cm")),
        ("12", "judged", Grader("judged", 0.1, "cm")),
    ],
)  # fmt: skip
def test_another_accepted_answer_has_a_rule_of_its_own_where_it_is_no_wider(answer, kind, own):
    assert grader_of_accepted(asked(answer), Grader(kind, 0.1, "cm", accepted=("z",))) == own
