"""The words by which a text names an answer: which window, which number, which choice, and when it is too early."""

from dataclasses import replace

import pytest

from darkroom.pipelines.records import Observation, Round, Truth, TruthBox
from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.verification.checks.anticipation import answer_not_anticipated, names_answer

COLOURS = ("A. red", "B. dark blue", "C. green")


@pytest.mark.parametrize(
    ("text", "answer", "question", "words"),
    [
        # in a row, in the singular or the plural, ignored words between them
        ("I see a spoon", "spoon", "What?", "spoon"), ("spoons", "spoon", "What?", "spoons"),
        ("spoon", "spoons", "What?", "spoon"),
        ("glass", "glas", "What?", None), ("bus", "bu", "What?", None), ("Red  Car!", "red car", "What?", "Red Car"),
        ("red the car", "red car", "What?", "red car"), ("car red", "red car", "What?", None),
        ("red", "red car", "What?", None),
        # words of the question
        ("red car", "red car", "What red car?", None), ("red car", "red car", "What red thing?", "red car"),
        # everyday words alone
        ("yes it is", "yes", "What?", None), ("yes sir", "yes sir", "What?", "yes sir"), ("x here", "x", "What?", None),
        ("the", "the", "What?", None),
        # a number of one digit counts things of the question
        ("7 signs", "7", "How many signs?", "7 signs"), ("Seven signs", "7", "How many signs?", "Seven signs"),
        ("7 red signs", "7", "How many signs?", "7 red signs"), ("7 very red signs", "7", "How many signs?", None),
        ("7 cars", "7", "How many signs?", None), ("seven", "7", "How many signs?", None),
        ("17 signs", "7", "How many signs?", None),
        ("zero signs", "0", "How many signs?", "zero signs"), ("9 signs", "nine", "How many signs?", "9 signs"),
        ("4 to go", "4", "What to do?", None),
        # a longer one counts by itself, up to four digits also in words
        ("10", "10", "How many?", "10"), ("ten", "10", "How many?", "ten"), ("forty-seven", "47", "?", "forty-seven"),
        ("9999", "9999", "?", "9999"),
        ("nine thousand nine hundred ninety-nine", "9999", "?", "nine thousand nine hundred ninety-nine"),
        ("ten thousand", "10000", "?", None),
        # a side, unless something leans to it
        ("the left", "left", "Which side?", "left"), ("leans to the left", "left", "Which side?", None),
        ("leans far; to the left", "left", "Which side?", "left"),
        ("leans to the red car", "red car", "Which?", "red car"),
    ],
)  # fmt: skip
def test_an_answer_is_named_by_its_words_in_a_row(text, answer, question, words):
    assert names_answer(text, bare_sample("s", question, answer=answer)) == words


@pytest.mark.parametrize(
    ("text", "answer", "question", "words"),
    [
        ("choice A", "A", "What?", "choice A"), ("option (A)", "A", "What?", "option (A"),
        ("answer is A", "A", "What?", "answer is A"),
        ("choice AB", "A", "What?", None), ("choice B", "A", "What?", None), ("red", "A", "What?", "red"),
        ("red or green", "A", "What?", None),
        ("blue", "B", "What?", None), ("red and green", "A, C", "What?", "red, green"), ("red", "A, C", "What?", None),
        ("red, green, dark blue", "A, C", "What?", None), ("none", "A", "What?", None),
        ("red", "A", "Is it red?", None),
    ],
)  # fmt: skip
def test_a_choice_is_named_by_its_letter_or_alone_by_its_text(text, answer, question, words):
    assert names_answer(text, bare_sample("s", question, answer=answer, choices=COLOURS)) == words


def test_the_first_text_that_names_it_is_told(make_case):
    found = answer_not_anticipated(make_case(thought="I look.", code="# STOP, I think\npass"))
    assert found.detail == "a comment of round 1 says 'STOP' before anything showed it"


@pytest.mark.parametrize(
    ("first", "is_early"),
    [(Observation("ok", ""), True), (Observation("ok", "STOP"), False), (Observation("ok", "GO"), True)],
)
def test_what_was_printed_may_tell_the_answer(make_case, first, is_early):
    seen = make_case().trajectory.rounds[0].observation
    rounds = (Round("I look.", "pass", first), Round("It is STOP.", "pass", seen))
    assert answer_not_anticipated(make_case(rounds=rounds)).passed is not is_early


def test_where_no_place_is_known_or_another_image_was_given_any_image_may_tell(make_case, make_image, store):
    elsewhere = store.add_pixels(make_image(3, 640, 480).crop((400, 300, 560, 440)))
    seen = make_case().trajectory.rounds[0].observation
    rounds = (Round("I look.", "pass", Observation("ok", "", images=(elsewhere,))), Round("It is STOP.", "pass", seen))
    case = make_case(rounds=rounds)
    assert not answer_not_anticipated(case).passed
    assert answer_not_anticipated(replace(case, sample=replace(case.sample, truth=Truth()))).passed
    on_another = Truth(boxes=(TruthBox("sign", 200, 120, 260, 150, image=1),))
    assert answer_not_anticipated(replace(case, sample=replace(case.sample, truth=on_another))).passed
    turned = store.add_pixels(make_image(4, 640, 480))
    assert answer_not_anticipated(replace(case, trajectory=replace(case.trajectory, images=(turned,)))).passed
