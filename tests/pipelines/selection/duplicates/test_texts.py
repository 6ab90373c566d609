"""Duplicates among texts: spelling makes no difference, numbers and signs do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.selection.duplicates import exact_texts, kept, near_texts, normalised

LONG = "What is the colour of the small car that is parked to the left of the red house near the bridge?"
TEXTS = st.lists(st.text("abc 12.,\u200b", max_size=20), max_size=15)


@pytest.mark.parametrize("texts", [["", ""], ["?!", " "], ["\u200b", "\u200d\ufeff"]])
def test_texts_without_words_duplicate_nothing(texts):
    assert exact_texts(texts) == near_texts(texts) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is it?", "what  is IT"),
        ("３ cars", "3 cars"),
        ("ca\u200brs\ufeff", "cars"),
        ("cafe\u0301", "café"),
        ("a − b", "a – b"),
        ("“Stop”", '"stop"'),
        ("图中有几只猫？", "图中有几只猫"),
    ],
)
def test_spellings_of_one_text_are_one(one, other):
    assert normalised(one) == normalised(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 + 5", "3 * 5"),
        ("3.5", "35"),
        ("-2", "2"),
        ("(2 + 3) * 4", "2 + (3 * 4)"),
        ("5!", "5"),
        ("图中有几只猫", "图中有几只狗"),
    ],
)
def test_what_means_something_else_stays_apart(one, other):
    assert exact_texts([one, other]) == near_texts([one, other], threshold=0.8) == []


def test_a_slightly_changed_question_is_near_and_says_how_near():
    found = near_texts([LONG, LONG.replace("near the bridge", "near that bridge")], threshold=0.7)
    assert [(one.index, one.of) for one in found] == [(1, 0)]
    assert found[0].distance == pytest.approx(1 - 17 / 21)


def test_problems_that_differ_in_a_number_are_different_unless_said_otherwise():
    texts = [f"{LONG} {LONG.replace('small', 'big')} There are {n} of them." for n in (7, 8)]
    assert near_texts(texts) == []
    assert len(near_texts(texts, same_numbers=False)) == 1


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(ValueError, match="threshold"):
        near_texts([], threshold=threshold)


@given(TEXTS)
@settings(max_examples=60)
def test_every_near_duplicate_is_as_near_as_it_says(texts):
    found = near_texts(texts, threshold=0.6)
    stays = set(kept(len(texts), found))
    assert found == near_texts(texts, threshold=0.6)
    assert all(one.of in stays and one.of < one.index and one.distance <= 0.4 + 1e-9 for one in found)


@given(TEXTS)
def test_exact_duplicates_are_near_too(texts):
    exact = {one.index for one in exact_texts(texts)}
    assert exact <= {one.index for one in near_texts(texts)}
