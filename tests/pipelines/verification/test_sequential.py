"""The sequential test of a rate: its error rates, by enumeration of every sequence of outcomes."""

from itertools import product

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.verification.proportion import SequentialTest

TEST = SequentialTest(low=0.2, high=0.5)
GUESSED = [SequentialTest(low=max(0.2, chance), high=0.5 + chance / 2) for chance in (0.5, 1 / 3, 0.25, 0.2, 0.1)]


def accepted(test: SequentialTest, outcomes: tuple[int, ...]) -> bool:
    """What somebody who asks in rounds ends with: True where the rate is taken for low."""
    n = test.n_more(0, 0)
    while n_more := test.n_more(sum(outcomes[:n]), n):
        n += n_more
    verdict = test.decide(sum(outcomes[:n]), n)
    assert verdict is not None
    return not verdict


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.35, 0.5, 0.6, 1.0])
def test_the_exact_probability_is_that_of_all_sequences(rate):
    short = SequentialTest(low=0.2, high=0.5, most=12)
    total = sum(
        rate ** sum(outcomes) * (1 - rate) ** (12 - sum(outcomes))
        for outcomes in product((0, 1), repeat=12)
        if accepted(short, outcomes)
    )
    assert short.acceptance(rate) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("test", [TEST, *GUESSED])
def test_the_error_rates_hold_for_free_answers_and_for_every_number_of_choices(test):
    assert max(test.error_rates) <= 0.1
    assert test.acceptance(test.low / 2) > test.acceptance(test.low) > test.acceptance(test.high)


def test_the_first_decision_is_made_at_the_first_look_and_none_before():
    assert [TEST.decide(n, n) for n in range(1, 5)] == [None, None, None, True]
    assert TEST.n_more(4, 4) == 0
    assert (TEST.n_more(0, 0), TEST.n_more(3, 3)) == (4, 1)
    at_once = SequentialTest(low=0.01, high=0.9, first=1)
    assert (at_once.decide(1, 1), at_once.decide(0, 1)) == (True, False)


def test_a_question_that_is_guessed_three_times_in_five_seldom_passes():
    """With four answers of which two may be right, it passed one time in two."""
    four_answers = sum(n * 0.6**k * 0.4 ** (4 - k) for k, n in enumerate((1, 4, 6)))
    assert four_answers == pytest.approx(0.525, abs=0.001)
    assert TEST.acceptance(0.6) < 0.03


@given(st.integers(0, 2**32 - 1))
def test_answers_asked_for_together_are_never_in_vain(bits):
    outcomes = tuple(bits >> n & 1 for n in range(32))
    one_by_one = next(n for n in range(4, 33) if TEST.decide(sum(outcomes[:n]), n) is not None)
    n = 4
    while n_more := TEST.n_more(sum(outcomes[:n]), n):
        n += n_more
    assert n == one_by_one


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"low": 0.5, "high": 0.5}, "low = 0.5"),
        ({"low": 0.0, "high": 0.5}, "low = 0.0"),
        ({"low": 0.2, "high": 0.5, "false_low": 0.0}, "error rates"),
        ({"low": 0.2, "high": 0.5, "first": 40}, "first = 40"),
    ],
)
def test_settings_that_make_no_test_are_named(settings, said):
    with pytest.raises(ValueError, match=said):
        SequentialTest(**settings)
