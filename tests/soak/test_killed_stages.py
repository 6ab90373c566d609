"""A family's draft, and suitability votes with pass rates, over HTTP, killed again and again: no answer on record is
asked for again, and the tables are those of a run that nobody disturbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.mock_endpoint import MockEndpoint
from tests.soak import rl_stages
from tests.soak.kills import Killed, killed
from tests.soak.policy_kills import killed_draft
from tests.soak.rl_stages import N_VOTES


def killed_rl_stages(endpoint: MockEndpoint, folder: Path, *, send_n: bool) -> Killed:
    n_rows = 60
    rl_stages.prepare(folder / "prepared", n_rows)
    work = partial(rl_stages.materialize, send_n=send_n)
    n_at_once = rl_stages.ROWS_AT_WORK * N_VOTES
    return killed(endpoint, folder / "prepared", work, n_answers=2 * N_VOTES * n_rows, n_at_once=n_at_once, n_kills=7)


@pytest.fixture(scope="module", params=["draft", "RL stages with n", "RL stages without n"])
def shard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    with MockEndpoint() as endpoint:
        if request.param == "draft":
            yield killed_draft(endpoint, n_rows=150)
        else:
            folder = tmp_path_factory.mktemp("rl")
            yield killed_rl_stages(endpoint, folder, send_n=request.param == "RL stages with n")


def test_the_kills_came_before_all_was_done_and_while_answers_were_in_flight(shard: Killed) -> None:
    n_durable = [len(kill.durable) for kill in shard.kills]
    assert n_durable == sorted(n_durable)
    assert 0 < n_durable[0] < n_durable[-1] < shard.n_answers
    assert any(n < shard.n_answers // 2 for n in n_durable)  # in the first stage
    assert any(n > shard.n_answers // 2 for n in n_durable)  # in the second
    assert any(shard.n_in_flight(life) for life in range(len(shard.kills)))


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


def test_no_kill_loses_more_than_was_in_flight(shard: Killed) -> None:
    for life in range(len(shard.kills)):
        assert len(shard.lost(life)) <= min(shard.n_in_flight(life), shard.n_at_once)


def test_the_tables_are_byte_for_byte_those_of_an_undisturbed_run(shard: Killed) -> None:
    assert shard.same_tables


def test_failures_within_an_http_200_are_asked_again_and_never_on_record() -> None:
    with MockEndpoint() as endpoint:
        shard = killed_draft(endpoint, n_rows=150, hiccups=True)
        n_hiccups = endpoint.counts()["n_hiccups"]
    done = shard.states[-1]
    assert shard.same_tables
    assert n_hiccups > shard.n_answers / 10
    assert done.durable == set(done.served)  # every answer, and no other text
    assert len(done.durable) == shard.n_answers
    assert all(done.tries[name] == kill.tries[name] for kill in shard.kills for name in kill.durable)
    assert shard.n_unexplained() == 0
