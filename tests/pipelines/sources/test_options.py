"""Choices in any spelling become ours, and what is no choice stays where it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.answers import letter_of, split_choice
from pipelines.rejects import Reason, RowFault
from pipelines.sources.options import LETTERS, from_letters, lettered, plain_label, split_question

STYLES = ["{}. {}", "{}) {}", "({}) {}", "{}: {}", "[{}] {}", "({}){}", "{}){}", "  {}. {}  "]
OURS = ("A. red", "B. blue", "C. green")

texts = st.lists(st.from_regex(r"[a-z0-9][a-z0-9 .,$\\{}'-]{0,20}[a-z0-9]", fullmatch=True), min_size=3, max_size=26)


@pytest.mark.parametrize("style", STYLES)
def test_letters_in_other_spellings_are_letters(style):
    assert (
        lettered([style.format(letter, text) for letter, text in zip("ABC", ("red", "blue", "green"), strict=True)])
        == OURS
    )


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (["E. coli", "B. cereus"], ("A. E. coli", "B. B. cereus")),
        (["A.M.", "P.M."], ("A. A.M.", "B. P.M.")),
        (["A) red", "blue"], ("A. A) red", "B. blue")),
        (["a) red", "b) blue"], ("A. red", "B. blue")),
        (["A", "B"], ("A. A", "B. B")),
        ([], ()),
    ],
)
def test_what_only_looks_like_letters_belongs_to_the_choice(given, ours):
    assert lettered(given) == ours


def test_letters_in_another_order_are_refused():
    with pytest.raises(RowFault, match="letters run B, A") as caught:
        lettered(["B) red", "A) blue"])
    assert caught.value.reason is Reason.MALFORMED_ROW


@pytest.mark.parametrize(
    "given", [{"A": "red", "B": "blue", "C": None}, {"b": "blue", "a": "red"}, {"A": "red", "B": "blue", "C": ""}]
)
def test_an_object_of_letters_is_choices(given):
    assert from_letters(given) == ("A. red", "B. blue")


@pytest.mark.parametrize("given", [{"A": "red", "C": "blue"}, {"0": "red", "1": "blue"}, {"A": None, "B": "blue"}])
def test_an_object_with_other_keys_is_refused(given):
    with pytest.raises(RowFault, match="the choices' letters are"):
        from_letters(given)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("[B]", "B"),
        ("b)", "B"),
        ("(B)", "B"),
        ("B:", "B"),
        ("B.", "B"),
        ("B) blue", "B. blue"),
        ("B.blue", "B. blue"),
        ("blue", "blue"),
    ],
)
def test_an_answer_s_letter_is_written_as_ours(given, plain):
    assert plain_label(given) == plain
    assert letter_of(plain, OURS) == "B"


@pytest.mark.parametrize(
    "block",
    [
        "A. red\nB. blue\nC. green",
        "A) red\n\nB) blue\nC) green\n",
        "Choices:\n(A) red\n(B) blue\n(C) green",
        "Options:\nA: red\nB: blue\nC: green",
        "choices: (A) red, (B) blue, (C) green",
        "Options: A. red B. blue C. green",
        "Choices:\n- red\n- blue\n- green",
        "The choices are:\nred\nblue\ngreen",
        "(A) red (B) blue (C) green",
        "A．red\nB．blue\nC．green",
    ],
)
def test_choices_are_cut_out_of_the_question(block):
    assert split_question(f"Which colour has the sign?\n{block}") == ("Which colour has the sign?", OURS)


@pytest.mark.parametrize(
    "question",
    [
        "Which of (A) and (B) is larger?",
        "A. is a point on the line. What is its distance?",
        "What does the sign say?\nB. red\nC. blue",
        "Let A. B. C. be points.",
        "A. red\nB. blue",
        "Choices:",
        "What are my options: none",
        "Read both lists.\nA. one\nB. two\nThen\nA. three\nB. four",
        "A. one\nB. two\nAnd more\nC. three",
        "",
    ],
)
def test_a_question_without_choices_stays_whole(question):
    assert split_question(question) == (question, ())


@pytest.mark.parametrize("block", ["\n(A) 1\n(B) 2", " (A) 1 (B) 2", "\n1\n2"])
def test_a_heading_may_follow_a_sentence(block):
    assert split_question(f"Find x. Choices:{block}") == ("Find x.", ("A. 1", "B. 2"))


def test_what_follows_the_choices_stays_with_the_question():
    stem, choices = split_question("Which colour?\nA. red\nB. blue\nAnswer with a letter.")
    assert (stem, choices) == ("Which colour?\nAnswer with a letter.", ("A. red", "B. blue"))


@given(texts, st.sampled_from(STYLES), st.sampled_from(["", "Choices:\n", "Options:\n"]))
def test_what_was_written_into_a_question_is_read_from_it(choices, style, heading):
    block = "\n".join(style.format(letter, text) for letter, text in zip(LETTERS, choices, strict=False))
    stem, found = split_question(f"What is it?\n{heading}{block}")
    assert stem == "What is it?"
    assert [split_choice(choice) for choice in found] == list(zip(LETTERS, choices, strict=False))
    assert lettered([style.format(letter, text) for letter, text in zip(LETTERS, choices, strict=False)]) == found


words = st.text(alphabet="AB Cab()[].:,\n-*Choices:Options: $\\{}12", max_size=80) | st.text(max_size=60)


@given(words)
def test_of_any_question_nothing_is_made_up(question):
    stem, choices = split_question(question)
    said = set(question.split()) | set("".join(question.split()))
    assert set(stem.split()) <= set(question.split())
    assert set("".join(split_choice(choice)[1] for choice in choices).replace(" ", "")) <= said
    assert [split_choice(choice)[0] for choice in choices] == list(LETTERS[: len(choices)])
    assert len(choices) != 1
    assert choices or stem == question
