"""Which answers are the same. Wrong ones that look right come first: a filter that lets them pass teaches them."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, strategies as st

from darkroom.pipelines.records.answers import letters_of, matches

CHOICES = ("A. red", "B. green", "C. blue", "D. a cat")


@pytest.mark.parametrize(
    "given",
    [
        "",
        " \n\t",
        ".",
        "A or B",
        "A/B",
        "A, B",
        "AB",
        "A B C D",
        "A. red B. green",
        "A. red\nB. green\nC. blue\nD. a cat",
        "not A",
        "not red",
        "A. not red",
        "A. green",
        "B",
        "B. red",
        "E",
        "a colour",
        "red or green",
        "red green",
        "The answer is A",
        "Answer: A",
        "A?",
        "A?!",
        "A\u200b",
        "А",  # Cyrillic
        "A)B",
        "A" * 100_000,
    ],
)
def test_an_answer_that_does_not_commit_to_the_right_choice_is_wrong(given):
    assert not matches(given, "A", CHOICES)


@pytest.mark.parametrize(
    "given",
    ["A", "a", " A ", "A.", "A)", "(A)", "A:", "A. red", "(A) Red.", "red", "RED", '"red"', "Ａ", "ｒｅｄ", "A. “red”"],
)
def test_letter_and_text_name_the_same_choice(given):
    assert matches(given, "A", CHOICES)
    assert matches(given, "A. red", CHOICES)
    assert matches(given, "red", CHOICES)


def test_a_text_that_begins_with_a_letter_of_the_choices_is_a_text():
    assert matches("a cat", "D", CHOICES)
    assert not matches("a cat", "A", CHOICES)


def test_of_choices_with_the_same_text_only_the_letter_tells():
    choices = ("A. red", "B. red", "C. blue")
    assert matches("B", "B", choices)
    assert matches("B. red", "B", choices)
    assert not matches("red", "B", choices)
    assert not matches("A", "B", choices)


def test_a_letter_alone_is_a_letter_even_where_a_choice_reads_the_same():
    choices = ("A. B", "B. A")
    assert matches("A", "A", choices)
    assert matches("A. B", "A", choices)
    assert not matches("B", "A", choices)
    assert not matches("B. A", "A", choices)


@pytest.mark.parametrize(
    ("given", "right"), [("A, C", True), ("C and A", True), ("red; a dog", True), ("A", False), ("A, B, C", False)]
)
def test_several_letters_are_each_compared(given, right):
    choices = ("A. red", "B. green", "C. a dog")
    assert matches(given, "A, C", choices) is right
    assert letters_of("C and A", choices) == ("A", "C")


def test_an_expected_answer_that_is_no_choice_matches_nothing():
    assert not matches("E", "E", CHOICES)
    assert not matches("purple", "purple", CHOICES)


@pytest.mark.parametrize("choice", ["red", "A.", "A. ", "1. red", ""])
def test_a_choice_without_letter_and_text_is_an_error(choice):
    with pytest.raises(ValueError, match=r"a choice reads 'A\. text'"):
        matches("A", "A", [choice])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", ""),
        ("", "12"),
        (" ", " "),
        ("12 or 13", "12"),
        ("12 13", "12"),
        ("not 12", "12"),
        ("12%", "12"),
        ("$12", "12"),
        ("12 cm", "12"),
        ("-12", "12"),
        ("1.2", "12"),
        ("1,2", "12"),
        ("1,00", "100"),
        ("1.000", "1000"),
        ("1,0000", "10000"),
        ("0,123", "123"),
        ("1_000", "1000"),
        ("007", "7"),
        ("01", "1"),
        ("1e", "1"),
        ("0x10", "16"),
        ("NaN", "Infinity"),
        ("Infinity", "-Infinity"),
        ("1e99999", "2e99999"),
        ("stop sign", "stop"),
        ("not stop", "stop"),
        ("stop go", "stop"),
        ("5'", '5"'),
        ("²", "two"),
        ("sto\u0301p", "stop"),
        ("STOP" * 25_000, "stop"),
        ("9" * 100_000, "9"),
    ],
)
def test_a_wrong_answer_is_wrong(given, expected):
    started = time.process_time()
    assert not matches(given, expected)
    assert not matches(expected, given)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1e3", "1000"),
        ("1,000", "1000"),
        ("1,234,567.50", "1234567.5"),
        ("+5", "5"),
        ("5.", "5"),
        (".5", "0.5"),
        ("-0", "0"),
        ("１２", "12"),
        ("007", "007."),
        ("Stop.", "STOP"),
        ("“stop”", "stop"),
        ("'stop.'", "stop"),
        ('"stop".', "stop"),
        ("stop   sign\n", "stop sign"),
        ("Straße", "STRASSE"),
        ("ﬁre", "fire"),
        (".", "."),
        ('"', '"'),
        ("nan", "NaN"),
    ],
)
def test_spellings_of_the_same_answer_match(given, expected):
    assert matches(given, expected)
    assert matches(expected, given)


@given(st.text())
@example("\ud800")
@example('""')
@example("'.'")
@example("1e9999")
def test_an_answer_matches_itself_unless_it_is_blank(text):
    assert matches(text, text) == bool(text.strip())


@given(st.text("12.,e+-\"'aA "), st.text("12.,e+-\"'aA "))
def test_without_choices_the_order_does_not_matter(one, other):
    assert matches(one, other) == matches(other, one)


@given(st.text(), st.sampled_from("ABCD"))
def test_no_text_matches_two_choices(text, letter):
    others = [other for other in "ABCD" if other != letter]
    assert not (matches(text, letter, CHOICES) and any(matches(text, other, CHOICES) for other in others))


@given(st.integers(-(10**9), 10**9))
def test_whole_numbers_match_with_and_without_separators(number):
    assert matches(f"{number:,}", str(number))
    assert not matches(f"{number:,}", str(number + 1))
