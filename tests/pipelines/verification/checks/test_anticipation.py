"""The answer, or a label that gives it away, before anything can have shown it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.pipelines.models.tasks import spelled_answer
from darkroom.pipelines.records import Observation, Round
from darkroom.pipelines.verification.checks import Flaw
from darkroom.pipelines.verification.checks.anticipation import answer_not_anticipated, names_answer


@pytest.mark.parametrize(
    ("question", "answer", "text", "words"),
    [
        ("What lies on the saucer beside the cup?", "spoon", "The question is about the spoon.", "spoon"),
        ("What lies on the saucer?", "spoon", "I look at the two spoons.", "spoons"),
        ("What does the sign say?", "Orchard Way", "It should read ORCHARD WAY.", "ORCHARD WAY"),
        ("Which number is on the plate?", "4077", "I look for 4077 on the wall.", "4077"),
        ("How many signs are there?", "3", "The three signs are tiny.", "three signs"),
        ("How many coins are there?", "42", "There should be forty-two coins.", "forty-two"),
        ("On which side is the flag?", "left", "It is towards the left of the picture.", "left"),
    ],
)
def test_the_answer_is_named_by_its_words(make_case, question, answer, text, words):
    sample = replace(make_case().sample, question=question, answer=answer)
    assert names_answer(text, sample) == words


@pytest.mark.parametrize(
    ("question", "answer", "text"),
    [
        ("Is the sign red?", "yes", "Yes, I should look closer."),
        ("Is the tower left or right of the tree?", "left", "It is on the left side."),
        ("On which side is the flag?", "left", "The picture leans clearly to the left."),
        ("On which side is the flag?", "right", "I put it the right way up."),
        ("How many signs are there?", "2", "I need two programs for this."),
        ("What is the value of x?", "x", "I look at x."),
        ("Which animal is it?", "cat", "The category is unclear."),
        ("What does it say?", "!!!", "I look closer!!!"),
    ],
)
def test_everyday_words_and_what_the_question_says_are_no_answer(make_case, question, answer, text):
    assert names_answer(text, replace(make_case().sample, question=question, answer=answer)) is None


def test_one_choice_alone_is_the_answer_and_two_are_a_question(make_case):
    sample = replace(make_case().sample, choices=("A. red", "B. dark blue"), answer="B")
    assert names_answer("I look at the dark blue badge.", sample) == "dark blue"
    assert names_answer("Is it red or dark blue?", sample) is None
    assert names_answer("I look at the red badge.", sample) is None
    assert names_answer("It has to be choice B.", sample) == "choice B"


def test_several_choices_are_the_answer_only_together(make_case):
    sample = replace(make_case().sample, choices=("A. red", "B. dark blue", "C. green"), answer="A, C")
    assert names_answer("I look at the red badge and the green one.", sample) == "red, green"
    assert names_answer("I look at the red badge.", sample) is None
    assert spelled_answer(sample) == "red, green"


def test_a_thought_or_a_comment_that_names_it_is_refused_before_the_look_and_not_after(make_case):
    for said in ({"thought": "The sign that says STOP is small."}, {"code": "# the STOP sign\nimage.save(path)"}):
        found = answer_not_anticipated(make_case(**said))
        assert (found.passed, found.reason) == (False, Flaw.ANSWER_ANTICIPATED)
    assert answer_not_anticipated(make_case(final_thought="It says STOP.")).passed


def test_a_problem_in_words_may_be_solved_before_it_is_computed(make_case):
    assert answer_not_anticipated(make_case(thought="It should be STOP.", images=())).passed


def test_after_a_view_without_the_target_it_is_still_too_early(make_case, make_image):
    case = make_case()
    elsewhere = case.store.add_pixels(make_image(3, 640, 480).crop((400, 300, 560, 440)))
    shown = case.trajectory.rounds[0].observation.images[0]

    def passed(first) -> bool:
        rounds = tuple(
            Round(thought, "pass", Observation("ok", "", images=(image,)))
            for thought, image in (("I look.", first), ("There is STOP, I look once more.", shown))
        )
        return answer_not_anticipated(make_case(rounds=rounds)).passed

    assert not passed(elsewhere)
    assert passed(shown)
