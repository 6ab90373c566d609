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


DECISIONS = {
    # right answers of so many: the most that are taken for low, the fewest that are taken for high
    4: (None, 3), 5: (0, 4), 7: (0, 4), 8: (1, 5), 11: (2, 6), 16: (3, 8), 19: (4, 9), 31: (8, 13),
}  # fmt: skip


@pytest.mark.parametrize(("n", "most_low", "fewest_high"), [(n, *counts) for n, counts in DECISIONS.items()])
def test_a_rate_is_decided_by_walds_bounds(n, most_low, fewest_high):
    for n_right in range(n + 1):
        low = most_low is not None and n_right <= most_low
        expected = False if low else (True if n_right >= fewest_high else None)
        assert TEST.decide(n_right, n) is expected, n_right


@pytest.mark.parametrize(("n_right", "is_high"), [(0, False), (10, False), (11, True), (32, True)])
def test_after_the_last_trial_the_likelier_rate_wins(n_right, is_high):
    assert TEST.decide(n_right, 32) is is_high
    assert TEST.n_more(n_right, 32) == 0


def test_evidence_for_neither_rate_is_taken_for_the_higher_one():
    even = SequentialTest(low=0.25, high=0.75, first=2, most=2)
    assert [even.decide(n_right, 2) for n_right in range(3)] == [False, True, True]


@pytest.mark.parametrize(
    ("n_right", "n", "n_more"), [(0, 0, 4), (0, 3, 1), (0, 4, 1), (1, 4, 3), (2, 4, 2), (3, 4, 0), (0, 5, 0), (2, 6, 3)]
)
def test_so_many_trials_are_asked_for_as_may_decide(n_right, n, n_more):
    assert TEST.n_more(n_right, n) == n_more


def test_the_usual_settings_allow_one_error_in_ten_with_four_to_thirty_two_trials():
    assert (TEST.false_high, TEST.false_low, TEST.first, TEST.most) == (0.1, 0.1, 4, 32)
    assert TEST.error_rates == pytest.approx((0.08314, 0.08613), abs=1e-5)
    assert SequentialTest(0.2, 0.5, most=4).error_rates == pytest.approx((0.1808, 0.3125), abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"low": 0.2, "high": 1.0},
        {"low": 0.5, "high": 0.2},
        {"low": 0.2, "high": 0.5, "false_high": 0.5},
        {"low": 0.2, "high": 0.5, "false_low": 0.5},
        {"low": 0.2, "high": 0.5, "false_high": 0.0},
        {"low": 0.2, "high": 0.5, "first": 0},
        {"low": 0.2, "high": 0.5, "first": 5, "most": 4},
    ],
)
def test_rates_errors_and_trials_lie_within_their_bounds(settings):
    with pytest.raises(ValueError, match="found"):
        SequentialTest(**settings)


def test_the_widest_settings_that_make_a_test():
    SequentialTest(0.01, 0.99, false_high=0.49, false_low=0.49, first=1, most=1)
    SequentialTest(0.2, 0.5, first=4, most=4)
