"""The methods that only the ablations have."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from darkroom.train.rl.methods import Judges
from measurements.ablations.methods import codev_by_boxes
from measurements.ablations.methods.codev_by_boxes import evidence_of
from measurements.ablations.methods.thyme_by_rules import ThymeByRules, is_consistent, process_quality
from tests.train.outcomes import SAMPLE, looked, outcome


def test_boxes_judge_a_crop():
    pixels = np.random.default_rng(0).integers(0, 255, (36, 48, 3), dtype=np.uint8)
    whole = Image.fromarray(pixels).resize((480, 360), Image.Resampling.BICUBIC)
    question = "What colour is the street sign in the region 110, 110, 210, 170?"

    def score(*box):
        shown = whole.crop(box).resize((2 * (box[2] - box[0]), 2 * (box[3] - box[1])))
        return evidence_of(shown, whole, f"image.crop({box})", question)

    assert score(100, 100, 220, 180) == 1.0
    assert score(180, 100, 300, 180) == 0.5
    assert score(300, 200, 420, 280) == 0.0
    assert score(0, 0, 480, 360) == 0.0


NAMED = replace(SAMPLE, question="What colour is the street sign in the region 56, 28, 112, 84?")


def named(*rounds, answer="blue"):
    """A rollout on a question that names the region of ``outcomes.CROPS``."""
    made = outcome(answer, *rounds)
    return replace(made, question=replace(made.question, sample=NAMED))


def rewards_by_boxes(monkeypatch, evidence, *group, **options):
    monkeypatch.setattr(codev_by_boxes, "evidence_of", lambda *_: evidence)
    method = codev_by_boxes.CodeVByBoxes(**options)
    return asyncio.run(method.score(group, Judges()))


def test_boxes_pay_for_evidence_where_no_answer_is_right(monkeypatch):
    with_code, without = rewards_by_boxes(monkeypatch, 1.0, named(looked()), named())
    assert (with_code.reward, without.reward) == (0.5, 0.0)


def test_faithfulness_is_logged_where_it_earns_nothing(monkeypatch):
    (clear,) = rewards_by_boxes(monkeypatch, 1.0, named(looked()), weight_tool=0.0)
    (partial,) = rewards_by_boxes(monkeypatch, 0.5, named(looked()), weight_tool=0.0)
    assert [one.parts["faithful"] for one in (clear, partial)] == [1.0, 0.0]
    assert clear.reward == 0.0


def test_a_thought_is_consistent_that_ends_with_the_answers_colour_alone():
    assert is_consistent("I crop. The sign is red.", "Red")
    assert not is_consistent("The sign is red.", "blue")
    assert not is_consistent("The sign is red or blue.", "red")
    assert not is_consistent("I crop the sign.", "red")


def test_the_quality_of_a_process_falls_with_turns_without_thought_and_with_repetition():
    assert process_quality(["I crop it.", "It is red."]) == 1.0
    assert process_quality(["", "It is red."]) == 0.75
    assert process_quality(["I crop it. I crop it.", "It is red."]) == pytest.approx((1 + 2 / 3) / 2)
    assert process_quality(["", ""]) == 0.0


def test_rules_pay_what_thyme_pays_for_an_addition():
    right = outcome("red", looked())
    score = asyncio.run(ThymeByRules(addition="process").score([right], Judges()))[0]
    assert score.reward == 1.0 * (1 + 0.5 * score.parts["process"]) + 0.5
    assert score.parts["process"] > 0
