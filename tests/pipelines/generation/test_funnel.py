"""A quota is filled with few samples beyond, whatever the yield."""

from hypothesis import given, strategies as st

from darkroom.pipelines.generation.funnel import Yield, next_limits

SHARDS = ["a-0000", "a-0001", "a-0002"]


@given(
    st.lists(st.lists(st.booleans(), max_size=80), min_size=1, max_size=6),
    st.integers(0, 90),
    st.sampled_from([None, 1, 7, 50]),
)
def test_a_quota_is_filled_or_every_sample_was_tried(shards, n_wanted, n_each):
    accepted = dict(enumerate(shards))
    names, so_far = [str(n) for n in accepted], {}
    while limits := next_limits(n_wanted, names, so_far, n_each=n_each):
        assert set(limits) <= set(names)
        for name, limit in limits.items():
            tried = accepted[int(name)][:limit]
            assert name not in so_far or limit > so_far[name].n_drafted, "every round asks for more"
            so_far[name] = Yield(limit, len(tried), sum(tried))
    n_accepted = sum(each.n_accepted for each in so_far.values())
    is_used_up = sum(each.n_drafted for each in so_far.values()) == sum(map(len, shards))
    assert n_accepted >= n_wanted or is_used_up


@given(st.integers(1, 500), st.integers(1, 8), st.sampled_from([None, 1, 50]))
def test_with_a_full_yield_nothing_is_drafted_beyond(n_wanted, n_shards, n_each):
    names = [str(n) for n in range(n_shards)]
    limits = next_limits(n_wanted, names, {}, n_each=n_each)
    assert sum(limits.values()) == n_wanted
    so_far = {name: Yield(limit, limit, limit) for name, limit in limits.items()}
    assert next_limits(n_wanted, names, so_far, n_each=n_each) == {}


def test_missing_rows_are_spread_over_shards_that_are_worth_a_run():
    assert next_limits(120, SHARDS, {}, n_each=50) == {"a-0000": 40, "a-0001": 40, "a-0002": 40}
    assert next_limits(60, SHARDS, {}, n_each=50) == {"a-0000": 30, "a-0001": 30}
    assert next_limits(60, SHARDS, {}) == {"a-0000": 60}


def test_half_a_yield_asks_for_twice_what_is_missing():
    assert next_limits(10, SHARDS, {"a-0000": Yield(10, 10, 5)}) == {"a-0000": 20}


def test_no_yield_at_all_goes_on_carefully():
    assert next_limits(2, SHARDS, {"a-0000": Yield(2, 2, 0)}) == {"a-0000": 6}


def test_a_shard_without_further_samples_is_left_for_the_next_with_the_yield_so_far():
    assert next_limits(10, SHARDS, {"a-0000": Yield(10, 8, 4)}) == {"a-0001": 12}
    assert next_limits(10, SHARDS[:1], {"a-0000": Yield(10, 4, 4)}) == {}
