from __future__ import annotations

from darkroom.pipelines.records import Votes
from darkroom.pipelines.rl.facts import polled


def test_what_judges_said_is_added_up() -> None:
    rows = [
        Votes("one", (True, True, False), n_wanted=5),
        Votes("one", (True, False, None), n_wanted=3),
        Votes("other", (False, False, False, False), n_wanted=4),
    ]
    found = polled(rows)
    assert (found.n_rows, found.n_ballots, found.n_invalid) == (3, 10, 1)
    assert (found.n_saved, found.n_tied) == (sum(row.n_saved for row in rows), 1)
    assert found.by_yes == {0: 1, 1: 1, 2: 1}
    assert found.judges == {"one", "other"}
    assert found.n_most == 5
    assert found.mean_agreement == sum(row.agreement for row in rows) / 3


def test_nothing_is_polled_of_no_row() -> None:
    found = polled([])
    assert (found.n_rows, found.mean_agreement, found.by_yes) == (0, 0.0, {})
