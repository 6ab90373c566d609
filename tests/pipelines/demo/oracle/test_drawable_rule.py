"""The gold set of problems, and the rule that stands in for a judge of suitability, measured on it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from darkroom.pipelines import rl
from darkroom.pipelines.demo.oracle.rl_answers import looks_suitable
from darkroom.pipelines.verification.judges.calibration import calibrate

GOLD = Path(rl.__file__).with_name("gold") / "suitability.jsonl"


@pytest.fixture(scope="module")
def gold():
    return [json.loads(line) for line in GOLD.read_text(encoding="utf-8").splitlines()]


def test_the_gold_set_is_balanced_and_no_problem_is_in_it_twice(gold):
    assert len(gold) >= 64
    assert Counter(row["suitable"] for row in gold) == {True: len(gold) // 2, False: len(gold) // 2}
    assert len({row["question"] for row in gold}) == len(gold)


def test_hard_cases_stand_on_both_sides(gold):
    hard = Counter(row["suitable"] for row in gold if row["hard"])
    assert min(hard[True], hard[False]) >= 8


def test_every_label_has_its_reason_on_one_line(gold):
    assert all(row["reason"].strip() and "\n" not in row["reason"] for row in gold)
    assert all(row.keys() == {"question", "suitable", "reason", "hard"} for row in gold)


def test_the_rule_agrees_with_the_gold_set_beyond_chance(gold):
    """Accuracy 0.94 and kappa 0.89 (0.77 to 0.97) when it was written."""
    said, labels = [looks_suitable(row["question"]) for row in gold], [row["suitable"] for row in gold]
    accuracy = sum(one == other for one, other in zip(said, labels, strict=True)) / len(gold)
    kappa = calibrate([float(one) for one in said], labels).kappa
    assert accuracy >= 0.9
    assert kappa.value >= 0.8
    assert kappa.low >= 0.65


@pytest.mark.parametrize("question", ["", "?", "Solve.", "x", "円の面積は?"])
def test_a_problem_without_telling_words_looks_unsuitable(question):
    assert not looks_suitable(question)
