"""A family's draft that is killed again and again: what is paid twice, and whether the tables are the same."""

import tempfile
from pathlib import Path

from benchmarks.drafting import CALLS_PER_ROW, CONCURRENCY, DECISION, MockSource, draft, take_in
from benchmarks.kills import SEED, Killed, killed
from benchmarks.mock_endpoint import MockEndpoint
from benchmarks.rows import Bar, Row, count_row, median_row

KILLS_PER_DRAFT = 5


def measure_kills(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    n_rows, n_drafts = (200, 1) if quick else (500, 4)
    drafts = [killed_draft(endpoint, n_rows, SEED + n) for n in range(n_drafts)]
    lives = [(each, life) for each in drafts for life in range(KILLS_PER_DRAFT)]
    in_flight = [each.n_in_flight(life) for each, life in lives]
    lost = [len(each.lost(life)) for each, life in lives]
    excess = max(n - most for n, most in zip(lost, in_flight, strict=True))
    unexplained = max(each.n_unexplained() for each in drafts)
    same = sum(each.same_tables for each in drafts)
    n_calls = n_rows * CALLS_PER_ROW
    note = f"{len(lives)} kills of the process group, {KILLS_PER_DRAFT} in each draft of {n_calls} calls"
    most = Bar("at most", CONCURRENCY)
    return [
        median_row("calls in flight at a kill", in_flight, "calls", note=note),
        median_row("calls paid twice for a kill", lost, "calls"),
        count_row("the same, worst kill", max(lost), "calls", most, "concurrency"),
        count_row("paid twice beyond those in flight, worst kill", excess, "calls", Bar("at most", 0)),
        count_row("answered, neither in the ledger nor lost by a kill", unexplained, "calls", Bar("at most", 0)),
        count_row("drafts with the same tables, byte for byte", same, "drafts", Bar("at least", n_drafts)),
    ]


def killed_draft(endpoint: MockEndpoint, n_rows: int, seed: int = SEED) -> Killed:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "prepared"
        take_in(home, MockSource(n_rows))
        n_calls = n_rows * CALLS_PER_ROW
        return killed(
            endpoint,
            home,
            draft,
            n_answers=n_calls,
            n_at_once=CONCURRENCY,
            n_kills=KILLS_PER_DRAFT,
            seed=seed,
            plan=DECISION,
        )
