"""Sentences with alternatives stand for all of their forms."""

import random

from darkroom.pipelines.demo import nth_form, one_form, some_form

TEXTS = ["It [leans|tilts] [left|right|].", "Plain {label}."]


def test_every_form_is_there_once():
    forms = [nth_form(TEXTS, n) for n in range(14)]
    assert sorted(forms[:7]) == sorted(
        ["It leans left.", "It tilts left.", "It leans right.", "It tilts right.", "It leans.", "It tilts.", TEXTS[1]]
    )
    assert forms[7:] == forms[:7]


def test_a_choice_is_of_all_forms():
    rng = random.Random(0)
    assert {one_form(TEXTS[0], rng) for _ in range(200)} == {nth_form(TEXTS[:1], n) for n in range(6)}
    assert {one_form("[So|Then] I look.", rng) for _ in range(20)} == {"So I look.", "Then I look."}


def test_a_text_with_many_forms_is_no_more_likely():
    rng = random.Random(0)
    drawn = [some_form(["[a|b|c] [d|e|f] [g|h|i]", "plain"], rng) for _ in range(400)]
    assert 140 < drawn.count("plain") < 260
    assert len(set(drawn)) == 28
