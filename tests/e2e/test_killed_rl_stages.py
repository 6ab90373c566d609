"""Suitability votes and pass rates over HTTP, killed again and again with all that they started: no answer on record is
asked for again, and the tables are those of a run that nobody disturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from benchmarks.mock_endpoint import MockEndpoint
from benchmarks.rl_client import N_VOTES
from benchmarks.rl_kills import ROWS_AT_WORK, Killed, killed

N_KILLS = 7


@pytest.fixture(scope="module", params=["n", "single"])
def shard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    with MockEndpoint() as endpoint:
        yield killed(endpoint, tmp_path_factory.mktemp("killed"), request.param, n_rows=60, n_kills=N_KILLS)


def test_the_kills_came_before_all_was_done(shard: Killed) -> None:
    n_durable = [len(kill.durable) for kill in shard.kills]
    assert len(n_durable) == N_KILLS
    assert n_durable == sorted(n_durable)
    assert 0 < n_durable[0] < n_durable[-1] < shard.n_answers
    assert any(n < shard.n_answers // 2 for n in n_durable)  # in the first stage
    assert any(n > shard.n_answers // 2 for n in n_durable)  # in the second


def test_an_answer_on_record_is_never_asked_for_again(shard: Killed) -> None:
    done = shard.states[-1]
    assert all(done.tries[name] == kill.tries[name] for kill in shard.kills for name in kill.durable)


def test_nothing_is_asked_for_twice_without_a_kill_between(shard: Killed) -> None:
    lives = zip(shard.states, shard.states[1:], strict=False)
    assert all(n == 1 for before, after in lives for n in (after.tries - before.tries).values())


def test_every_answer_that_was_given_twice_was_lost_in_a_kill(shard: Killed) -> None:
    done = shard.states[-1]
    n_lost = Counter(name for life in range(len(shard.kills)) for name in shard.lost(life))
    assert done.served - Counter(set(done.served)) == n_lost
    assert done.durable == set(done.served)
    assert len(done.durable) == shard.n_answers


def test_no_kill_loses_more_than_the_rows_at_work(shard: Killed) -> None:
    assert all(len(shard.lost(life)) <= ROWS_AT_WORK * N_VOTES for life in range(len(shard.kills)))


def test_the_tables_are_byte_for_byte_those_of_an_undisturbed_run(shard: Killed) -> None:
    assert shard.same_tables
