"""Wilson's interval against published figures, and at its ends."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.verification.proportion import Proportion, proportion_of


@pytest.mark.parametrize(
    ("n", "of", "low", "high"),
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_interval_is_the_published_one(n, of, low, high):
    assert Proportion(n, of).interval == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 400), st.integers(0, 400))
def test_interval_holds_the_share_inside_0_to_1(n, more):
    share = Proportion(n, n + more)
    low, high = share.interval
    assert 0 <= low <= (share.value if share.of else 0) <= high <= 1


def test_share_of_nothing_has_no_value():
    assert proportion_of([]).value is None
    assert str(proportion_of([])) == "–"


def test_share_counts_what_is_true():
    assert proportion_of(n < 3 for n in range(4)) == Proportion(3, 4)


@pytest.mark.parametrize(
    ("n", "of", "value", "words"), [(0, 0, None, "–"), (0, 1, 0.0, "0%"), (1, 3, 1 / 3, "33%"), (3, 3, 1.0, "100%")]
)
def test_a_proportion_reads_as_whole_per_cent(n, of, value, words):
    assert (Proportion(n, of).value, str(Proportion(n, of))) == (value, words)


@pytest.mark.parametrize(
    ("n", "of", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 3, 0.0, 0.5615), (3, 3, 0.4385, 1.0), (1, 3, 0.0615, 0.7923), (1, 1, 0.2065, 1.0)],
)
def test_none_and_all_are_certain_on_their_own_side_only(n, of, low, high):
    assert Proportion(n, of).interval == pytest.approx((low, high), abs=5e-5)
    assert Proportion(of - n, of).interval == pytest.approx((1 - high, 1 - low), abs=5e-5)
