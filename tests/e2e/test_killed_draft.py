"""A family's draft at an HTTP endpoint, killed again and again with all that it started: nothing is paid for twice
beyond what was in flight, and the tables are those of a draft that nobody disturbed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.mock_endpoint import MockEndpoint
from benchmarks.policy_kills import Draft, killed_drafts


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Draft]:
    with MockEndpoint() as endpoint:
        (made,) = killed_drafts(endpoint, tmp_path_factory.mktemp("killed"), n_rows=150, n_drafts=1)
        yield made


def test_no_kill_loses_more_than_was_in_flight(draft: Draft) -> None:
    assert all(0 <= kill.n_lost <= kill.n_in_flight for kill in draft.kills)


def test_the_kills_came_while_calls_were_in_flight(draft: Draft) -> None:
    assert any(kill.n_in_flight > 0 for kill in draft.kills)


def test_the_endpoint_answered_what_the_ledger_holds_and_what_kills_lost(draft: Draft) -> None:
    assert draft.n_paid_twice == sum(kill.n_lost for kill in draft.kills)


def test_the_tables_are_byte_for_byte_those_of_an_undisturbed_draft(draft: Draft) -> None:
    assert draft.same_tables
