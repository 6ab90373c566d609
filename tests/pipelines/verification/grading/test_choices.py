"""Choices: which words name one, what names two, and choices that stand in a question."""

import pytest

from darkroom.pipelines.records.samples import bare_sample
from darkroom.pipelines.verification.grading.choices import chosen_letter, chosen_letters, with_choices

CHOICES = ("A. red", "B. green", "C. a cat", "D. 12")


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("A", "A"), ("(A)", "A"), ("a", "A"), ("red", "A"), ("A. red", "A"), ("red (A)", "A"), ("(A) red", "A"),
        ("A (red)", "A"),
        ("[B]", "B"), ('{"answer": "B"}', "B"), (r"\boxed{\text{B}}", "B"), ("option B", "B"), ("I choose B.", "B"),
        ("It is red.", "A"), ("the cat", "C"), ("cat", "C"), ("12", "D"), ("twelve", "D"), ("12.0", "D"),
        ("D. twelve", "D"),
        # letter and text disagree, two are named, or none is
        ("A. green", None), ("green (A)", None), ("A or B", None), ("A and B", None),
        ("A, B", None), ("A; D", None), ("AB", None), ("13", None),
        ("E", None),
        ("", None), ("not A", None), ("(red)", None),
        # a reason of three words or more that names no other choice
        ("B because it is green and nice", "B"), ("B because it is red and nice", None), ("B because", None),
        ("B because it is nice", "B"), ("B because nice one", None), ("B because nice", None),
        ("B because it is not nice", None),
        # a conclusion from reasons that name no other choice
        ("It is green, so the answer is B.", "B"), ("It is red, so the answer is B.", None),
        ("It looks nice, so the answer is B.", "B"), ("It is C, so the answer is B.", None),
        ("It might be green, so the answer is B.", None), ("It is green, so the answer is B or C.", None),
    ],
)  # fmt: skip
def test_an_answer_names_one_choice_or_none(answer, letter):
    assert chosen_letter(answer, CHOICES, "What is it?") == letter


@pytest.mark.parametrize(
    ("choices", "answer", "letter"),
    [
        (("A. (1,2)", "B. (2,1)"), "(1, 2)", "A"), (("A. (1,2)", "B. (2,1)"), "(1; 2)", "A"),
        (("A. (1,2)", "B. (2,1)"), "(3, 1)", None), (("A. [1;2]", "B. [2;1]"), "[1,2]", "A"),
        # a point has brackets, and numbers in them
        (("A. (u;v)", "B. (v;u)"), "(u, v)", None), (("A. k7 ; 2", "B. 2"), "k7;2", None),
        (("A. 1/2", "B. 1/3"), "0.5", "A"), (("A. 1/2", "B. 2/4"), "0.5", None), (("A. x+1", "B. x-1"), "x - 1", "B"),
        (("A. yes", "B. no"), "Yes, it is open.", "A"), (("A. yes", "B. no"), "It is not open.", "B"),
        (("A. yes", "B. yes"), "Yes, it is open.", None), (("A. red", "B. red"), "red", None), ((), "red", None),
        (("A. option B", "B. C"), "option B", "A"),
    ],
)  # fmt: skip
def test_a_choice_is_also_its_value(choices, answer, letter):
    assert chosen_letter(answer, choices, "Is it open?") == letter


def test_what_is_most_likely_is_asked_for():
    assert chosen_letter("most likely B", CHOICES, "Which is most likely?") == "B"
    assert chosen_letter("most likely B", CHOICES, "Which is it?") is None


@pytest.mark.parametrize(("n_chars", "letter"), [(400, "A"), (401, None)])
def test_only_a_letter_is_read_in_a_long_answer(n_chars, letter):
    question = "What is the colour of the car?"
    assert chosen_letter("The car is red".ljust(n_chars - 1) + ".", CHOICES, question) == letter
    assert chosen_letter("A".ljust(n_chars), CHOICES, question) == "A"


SIDES = ("A. The dog is on the left", "B. The dog is on the right")


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("It is on the left", "A"), ("on the right side", "B"), ("left", "A"), ("The dog is on the right", "B"),
        ("It is left and right", None), ("It is not on the left", None), ("It is on the top", None),
        ("The cat is on the left", None),
    ],
)  # fmt: skip
def test_sentences_are_told_apart_by_the_words_in_which_they_differ(answer, letter):
    assert chosen_letter(answer, SIDES, "On which side is the dog?") == letter


def test_words_of_a_choice_stand_in_its_order():
    choices = ("A. The dog is left of the car", "B. The dog is right of the car")
    question = "How does the dog stand to the car?"
    assert chosen_letter("It is left of the car", choices, question) == "A"
    assert chosen_letter("The car is left of the dog", choices, question) is None


def test_words_that_the_question_offers_tell_choices_apart_only_where_it_offers_them():
    choices = ("A. the tall man", "B. the short man")
    assert chosen_letter("It is the tall one of men", choices, "Is the tall man happy?") is None
    assert chosen_letter("The tall man", choices, "Is the tall man happy?") == "A"


@pytest.mark.parametrize(
    ("answer", "letters"),
    [
        ("A, C", {"AC"}), ("A and C", {"AC"}), ("AC", {"AC"}), ("A C", {"AC"}), ("red, a cat", {"AC"}), ("A", {"A"}),
        ("A, A", set()), ("A, red", set()), ("A, E", {"A"}),
    ],
)  # fmt: skip
def test_several_choices_are_each_named_once(answer, letters):
    assert {"".join(sorted(named)) for named in chosen_letters(answer, CHOICES, "Which?")} == letters


@pytest.mark.parametrize(
    ("question", "answer", "rest", "choices"),
    [
        ("Which? (A) bus (B) tram", "A", "Which? ", ("A. bus", "B. tram")),

        ("Which? a) bus, b) tram", "tram", "Which? ", ("A. bus", "B. tram")),
        ("Which?\nA. bus\nB. tram\nPlease answer.", "B", "Which?\n", ("A. bus", "B. tram")),
        ("Which? A. bus or B. tram?", "A", "Which? ", ("A. bus", "B. tram")),
        ("A. x? (A) bus (B) tram", "A", "A. x? ", ("A. bus", "B. tram")),
        ("Which (A) bus (B) tram (A) car (B) train", "A", "Which (A) bus (B) tram ", ("A. car", "B. train")),
        # the answer is none of them, or they are no choices
        ("Which? (A) bus (B) tram", "car", None, ()), ("Which? (A) bus", "A", None, ()),
        ("Which? (A) bus (C) tram", "A", None, ()),
        ("Which? (B) bus (C) tram", "B", None, ()), ("Which? (A) (B) tram", "B", None, ()), ("Which?", "A", None, ()),
    ],
)  # fmt: skip
def test_choices_may_stand_in_the_question(question, answer, rest, choices):
    sample = with_choices(bare_sample("s", question, answer=answer))
    assert (sample.question, sample.choices) == (question if rest is None else rest, choices)


def test_a_sample_with_choices_keeps_them():
    own = bare_sample("s", "Which? (A) bus (B) tram", answer="A", choices=("A. x", "B. y"))
    assert with_choices(own) == own
