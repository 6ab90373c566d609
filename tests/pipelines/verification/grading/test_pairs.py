"""Pairs of predictions and answers: how many honest answers are refused, and how many wrong ones accepted."""

from collections import Counter

import pytest

from darkroom.pipelines.verification.grading import grade
from tests.pipelines.verification.grading.pairs import pairs

MAX_FALSE_REJECTS, MAX_FALSE_ACCEPTS = 0.08, 0.005
IN_PROCESS = frozenset(["number", "text", "list", "choice", "box"])


def rates(half: str, kinds: frozenset[str], pattern: str) -> tuple[float, float]:
    """The shares of false rejects and of false accepts."""
    counts = Counter(
        (pair.is_same, grade(pair.prediction, pair.sample, pair.grader).right)
        for pair in pairs(pattern)
        if pair.half == half and pair.grader.kind in kinds
    )
    n_same, n_other = (counts[is_same, True] + counts[is_same, False] for is_same in (True, False))
    return counts[True, False] / n_same, counts[False, True] / n_other


@pytest.mark.parametrize(
    ("pattern", "half", "most"),
    [
        ("1_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("2_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("3_*.txt", "held_out", MAX_FALSE_REJECTS),
        ("4_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("5_*.txt", "held_out", MAX_FALSE_REJECTS),
        ("6_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("7_*.txt", "held_out", MAX_FALSE_REJECTS),
        ("8_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("9_*.txt", "held_out", 0.2),
        ("10_*.txt", "tuned", 0.1),
        ("11_*.txt", "held_out", 0.2),
        ("12_*.txt", "tuned", 0.12),
        ("13_*.txt", "held_out", MAX_FALSE_REJECTS),
        ("14_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("24_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("25_*.txt", "held_out", 0.2),
        ("26_*.txt", "tuned", 0.2),
        ("16_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("18_*.txt", "tuned", MAX_FALSE_REJECTS),
        ("20_*.txt", "tuned", 0.1),
        ("22_*.txt", "tuned", MAX_FALSE_REJECTS),
    ],
)
def test_few_honest_answers_are_refused_and_hardly_a_wrong_one_is_accepted(pattern: str, half: str, most: float):
    false_rejects, false_accepts = rates(half, IN_PROCESS, pattern)
    assert false_rejects <= most
    assert false_accepts <= MAX_FALSE_ACCEPTS


def test_a_pair_stands_once():
    seen = Counter((pair.prediction, pair.sample.question, pair.sample.answer, pair.grader.kind) for pair in pairs())
    assert [pair for pair, n in seen.items() if n > 1] == []
