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
