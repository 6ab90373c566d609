"""A quota is filled with few samples beyond, whatever the yield."""

from hypothesis import given, strategies as st

from darkroom.pipelines.generation.funnel import Yield, next_limit


@given(st.lists(st.booleans(), max_size=200), st.integers(0, 60))
def test_a_quota_is_filled_or_every_sample_was_tried(accepted, n_wanted):
    so_far, limit = None, next_limit(n_wanted, None)
    while limit is not None:
        n_drafted = min(limit, len(accepted))
        so_far = Yield(limit, n_drafted, sum(accepted[:n_drafted]))
        limit = next_limit(n_wanted, so_far)
    assert so_far is not None
    assert so_far.n_accepted >= n_wanted or so_far.n_drafted == len(accepted)


def test_with_a_full_yield_nothing_is_drafted_beyond():
    assert next_limit(10, None) == 10
    assert next_limit(10, Yield(10, 10, 10)) is None


def test_half_a_yield_asks_for_twice_what_is_missing():
    assert next_limit(10, Yield(10, 10, 5)) == 20


def test_no_yield_at_all_goes_on_carefully():
    assert next_limit(2, Yield(2, 2, 0)) == 6


def test_a_partition_without_further_samples_is_exhausted():
    assert next_limit(10, Yield(10, 4, 4)) is None
