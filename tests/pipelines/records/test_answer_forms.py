"""Answers in a text, choices in an answer, and how alike two texts are."""

import pytest

from darkroom.pipelines.records.answers import (
    compatible,
    edit_similarity,
    final_answer,
    letter_of,
    letters_of,
    matches,
    split_choice,
)

COLOURS = ("A. red", "B. green", "C. red and green", "D. D")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", None),
        ("red", None),
        ("<answer> red\n</answer>", "red"),
        ("<answer>red</answer>, no: <answer>green</answer>.", "green"),
        ("<ANSWER>red", "red"),
        (r"\boxed{1} <answer>red</answer> \boxed{2}", "red"),
        (r"\boxed{1}, so \boxed { 2 }.", "2"),
        (r"\boxed{\frac{1}{2}} and }", r"\frac{1}{2}"),
        (r"\boxed{}", ""),
        (r"\boxed{\frac{1}{2}", None),
    ],
)
def test_the_last_answer_that_is_marked_as_one_counts(text, answer):
    assert final_answer(text) == answer


@pytest.mark.parametrize(
    ("choice", "split"),
    [
        ("A. red", ("A", "red")),
        (" b) red\nblue ", ("B", "red\nblue")),
        ("(C) red", ("C", "red")),
        ("D: red", ("D", "red")),
        ("E red", ("E", "red")),
    ],
)
def test_a_choice_is_a_letter_and_a_text(choice, split):
    assert split_choice(choice) == split


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("a", "A"),
        ("red", "A"),
        ("A red", "A"),
        ("A green", None),
        ("E", None),
        ("E red", None),
        ("D", "D"),
        ("D. D", "D"),
        ("red and green", "C"),
        ("", None),
    ],
)
def test_letter_and_text_are_of_one_choice(answer, letter):
    assert letter_of(answer, COLOURS) == letter


def test_a_text_that_two_choices_have_names_neither_without_its_letter():
    twice = ("A. red", "B. red")
    assert [letter_of(answer, twice) for answer in ("red", "B. red", "B")] == [None, "B", "B"]


@pytest.mark.parametrize(
    ("answer", "letters"),
    [
        ("B, A", ("A", "B")),
        ("A & B; C", ("A", "B", "C")),
        ("A, A", ("A",)),
        ("A and E", ()),
        ("A,", ()),
        ("", ()),
        ("red and green", ("C",)),
        ("red, green", ("A", "B")),
    ],
)
def test_several_letters_are_sorted_and_each_is_one(answer, letters):
    assert letters_of(answer, COLOURS) == letters


def test_what_names_no_choice_is_not_even_itself():
    assert not matches("E", "E", COLOURS)
    assert matches("B, A", "A and B", COLOURS)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("１２", "12"),
        ("ﬁ", "fi"),
        ("Ⅻ", "XII"),
        ("e\u0301", "é"),
        ("5²", "5²"),
        ("x₁", "x₁"),
        ("1½", "1½"),
        ("５²", "5²"),
        ("plain", "plain"),
    ],
)
def test_compatible_letters_are_one_unless_their_place_means_something(text, same):
    assert compatible(text) == same


@pytest.mark.parametrize(
    ("text", "expected", "similarity"),
    [
        ("", "", 0.0),
        ("a", "", 0.0),
        ("", "ab", 0.0),
        ("abc", "abc", 1.0),
        ("abd", "abc", 2 / 3),
        ("ab", "abc", 2 / 3),
        ("abc", "ab", 2 / 3),
        ("bc", "abc", 2 / 3),
        ("kitten", "sitting", 4 / 7),
        ("abcd", "bcda", 0.5),
        ("flaw", "lawn", 0.5),
        ("ab", "ba", 0.0),
    ],
)
def test_similarity_is_one_less_the_edits_as_a_share_of_the_longer(text, expected, similarity):
    assert edit_similarity(text, expected) == pytest.approx(similarity)


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ('"red"', "red", True),
        ("'red'.", "red", True),
        ('"red."', "red", True),
        ('".red."', "red", False),
        ("red..", "red", True),
        ("red...", "red", False),
        ("1,234.5", "1234.5", True),
        ("1,23", "123", False),
        ("12,34,567", "1234567", False),
        ("1e4", "10000", True),
        ("1e10000", "1e10000", True),
        ("1e10000", "10e9999", False),
        ("1e9999", "10e9998", True),
        ("00.5", "0.5", False),
        (".", "0", False),
    ],
)
def test_numbers_are_compared_by_value_and_texts_without_what_stands_around_them(answer, expected, same):
    assert matches(answer, expected) is same
