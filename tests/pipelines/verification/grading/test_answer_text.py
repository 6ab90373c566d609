"""Wrapping, hedges and hidden characters: which layers are removed, and which words and letters count."""

import pytest

from darkroom.pipelines.verification.grading.answer_text import (
    bare,
    hedging_words,
    hidden,
    levels,
    open_words,
    turning_words,
    without_quotes_of,
)


@pytest.mark.parametrize(
    ("answer", "inner"),
    [
        ("The answer is 12.", "12"), ("So, the final answer is: **12**", "12"), ("12.", "12"), ("12。", "12"),
        ("12 .", "12"),
        ("12..", "12.."), ("$12$", "12"), (r"\boxed{12}", "12"), ('"red"', "red"), ("“red”", "red"), ("「red」", "red"),
        ("<answer>x</answer>", "x"), ("**a** b **c**", "a b c"), ("−5", "-5"), ("–5", "-5"), ("a\u00a0b", "a b"),
        ("answer: answer: x", "x"), ("(x)", "(x)"), ("", ""), ("１２", "12"),
        # brackets that do not surround it all stay
        (r"\boxed{a}\boxed{b}", r"\boxed{a}\boxed{b}"), (r"\boxed{a}}", r"\boxed{a}}"), (r"\boxed{{a}", r"\boxed{{a}"),
        (r"\boxed{}a{}", r"\boxed{}a{}"), (r"\boxed{a{b}}", "a{b}"),
    ],
)  # fmt: skip
def test_an_answer_is_what_its_wrapping_surrounds(answer, inner):
    assert bare(answer) == inner


@pytest.mark.parametrize(("n_layers", "inner"), [(1, "x"), (6, "x"), (7, r"\boxed{x}")])
def test_no_more_than_six_layers_are_removed(n_layers, inner):
    assert bare(r"\boxed{" * n_layers + "x" + "}" * n_layers) == inner


@pytest.mark.parametrize(
    ("text", "brackets", "depths"),
    [
        ("(a[b]{c})", "()[]{}", [1, 1, 2, 2, 1, 2, 2, 1, 0]), ("{}()", "{}", [1, 0, 0, 0]), (")(", "()", [-1, 0]),
        ("", "()", []), ("]a}", "()[]{}", [-1, -1, -2]),
    ],
)  # fmt: skip
def test_open_brackets_are_counted_after_each_letter(text, brackets, depths):
    assert levels(text, brackets) == depths
    assert levels("([{") == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "hedges", "turns"),
    [
        ("a or b, maybe? or", {"or": 2, "maybe": 1, "?": 1}, {}),
        ("It isn't not No. 5, no", {}, {"n't": 1, "not": 1, "no": 1}),
        ("Not  SURE", {"not sure": 1}, {"not": 1}), ("I can’t tell", {"can't tell": 1}, {"n't": 1}), ("red", {}, {}),
        ("orange knot", {}, {}), ("ｏｒ", {"or": 1}, {}),
    ],
)  # fmt: skip
def test_words_that_hedge_or_deny_are_counted(text, hedges, turns):
    assert (hedging_words(text), turning_words(text)) == (hedges, turns)
    assert open_words(text) == hedges | turns


@pytest.mark.parametrize(("n_chars", "is_quoted"), [(1, True), (60, True), (61, False)])
@pytest.mark.parametrize("mark", ["'", '"'])
def test_what_the_question_quotes_is_left_out_of_the_answer(n_chars, is_quoted, mark):
    quoted = f"{mark}{'a' * n_chars}{mark}"
    assert without_quotes_of(f"Who says {quoted}?", f"he {quoted}, she {quoted}") == (
        "he , she " if is_quoted else f"he {quoted}, she {quoted}"
    )
    assert without_quotes_of("Who?", quoted) == quoted


def test_characters_that_are_not_seen_are_hidden_and_spaces_are_not():
    seen = "aé 1\n\t\r\u3000·\ufe10"
    unseen = "\u200b\u202e\x00\ud800\ue000\u034f\u2800\u3164\ufe00\ufe0f"
    assert hidden(seen) == frozenset()
    assert hidden(seen + unseen) == frozenset(unseen)
