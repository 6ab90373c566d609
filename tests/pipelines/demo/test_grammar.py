"""Sentences with alternatives stand for all of their forms."""

import random

import pytest

from darkroom.pipelines.demo.grammar import Forms, one_form, some_form

TEXTS = ["It [leans|tilts] [left|right|].", "Plain {label}."]


def test_every_form_is_there_once():
    forms = Forms(TEXTS)
    assert sorted(forms) == sorted(
        ["It leans left.", "It tilts left.", "It leans right.", "It tilts right.", "It leans.", "It tilts.", TEXTS[1]]
    )
    assert len(forms) == len(set(forms)) == 7
    assert forms[6] == TEXTS[1]


@pytest.mark.parametrize("place", [7, -1])
def test_there_are_no_others(place):
    with pytest.raises(IndexError):
        Forms(TEXTS)[place]


def test_a_choice_is_of_all_forms():
    rng = random.Random(0)
    assert {rng.choice(Forms(TEXTS)) for _ in range(200)} == set(Forms(TEXTS))
    assert {one_form("[So|Then] I look.", rng) for _ in range(20)} == {"So I look.", "Then I look."}


def test_a_text_with_many_forms_is_no_more_likely():
    rng = random.Random(0)
    drawn = [some_form(["[a|b|c] [d|e|f] [g|h|i]", "plain"], rng) for _ in range(400)]
    assert 140 < drawn.count("plain") < 260
    assert len(set(drawn)) == 28
