"""A family's draft that is killed again and again: what is paid twice, and whether the tables are the same."""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.drafting import CALLS_PER_ROW, CONCURRENCY, DECISION, MockSource, draft, take_in
from benchmarks.mock_endpoint import MockEndpoint, table_files
from benchmarks.rows import Bar, Row, count_row, median_row
from pipelines.storage.ledger import Ledger

SEED = 20261121
KILLS_PER_DRAFT = 5
_MOST_LATE = 32
"""Answers that may come between the moment and the kill: on a busy machine all of them might."""


@dataclass(frozen=True)
class State:
    """What the endpoint and the ledger had counted at one moment."""

    n_received: int
    n_answered: int
    n_durable: int

    @property
    def n_lost(self) -> int:
        """Answers that were paid for and are not in the ledger."""
        return self.n_answered - self.n_durable


@dataclass(frozen=True)
class Kill:
    """What happened between the start of a process and its death."""

    n_in_flight: int
    """Calls of this process that the endpoint had received and whose result was not yet in the ledger."""
    n_lost: int
    """Those of them that were answered: they are paid for again."""


@dataclass(frozen=True)
class Draft:
    """One draft with all of its kills."""

    kills: list[Kill]
    n_paid_twice: int
    """Calls that were answered beyond those in the ledger, when all is done."""
    same_tables: bool


def measure_kills(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    n_rows, n_drafts = (200, 1) if quick else (500, 4)
    with tempfile.TemporaryDirectory() as name:
        drafts = killed_drafts(endpoint, Path(name), n_rows=n_rows, n_drafts=n_drafts)
    kills = [kill for draft in drafts for kill in draft.kills]
    excess = max(kill.n_lost - kill.n_in_flight for kill in kills)
    unexplained = max(draft.n_paid_twice - sum(kill.n_lost for kill in draft.kills) for draft in drafts)
    same = sum(draft.same_tables for draft in drafts)
    n_calls = n_rows * CALLS_PER_ROW
    note = f"{len(kills)} kills of the process group, {KILLS_PER_DRAFT} in each draft of {n_calls} calls"
    return [
        median_row("calls in flight at a kill", [kill.n_in_flight for kill in kills], "calls", note=note),
        median_row("calls paid twice for a kill", [kill.n_lost for kill in kills], "calls"),
        count_row(
            "the same, worst kill",
            max(kill.n_lost for kill in kills),
            "calls",
            Bar("at most", CONCURRENCY),
            "concurrency",
        ),
        count_row("paid twice beyond those in flight, worst kill", excess, "calls", Bar("at most", 0)),
        count_row("answered, neither in the ledger nor lost by a kill", unexplained, "calls", Bar("at most", 0)),
        count_row("drafts with the same tables, byte for byte", same, "drafts", Bar("at least", n_drafts)),
    ]


def killed_drafts(endpoint: MockEndpoint, folder: Path, *, n_rows: int, n_drafts: int) -> list[Draft]:
    """Drafts of the same samples, each killed ``KILLS_PER_DRAFT`` times; beside them an undisturbed one."""
    chance, undisturbed = random.Random(SEED), folder / "undisturbed"
    take_in(undisturbed, MockSource(n_rows))
    homes = [folder / f"killed{n}" for n in range(n_drafts)]
    for home in homes:
        shutil.copytree(undisturbed, home)
    endpoint.reset(plan=DECISION)
    draft(endpoint.url, undisturbed)
    expected = table_files(undisturbed)
    return [_killed(endpoint, home, n_rows * CALLS_PER_ROW, chance, expected) for home in homes]


def _killed(
    endpoint: MockEndpoint, home: Path, n_calls: int, chance: random.Random, expected: dict[str, bytes]
) -> Draft:
    endpoint.reset(plan=DECISION)
    kills, before = [], State(0, 0, 0)
    for share in sorted(chance.uniform(0.02, 0.98) for _ in range(KILLS_PER_DRAFT)):
        n_more = share * (n_calls - before.n_durable)
        endpoint.hold(int(n_more) + _MOST_LATE)
        _draft_until(endpoint, home, before.n_durable + n_more)
        after = _state(endpoint, home)
        n_in_flight = after.n_received - before.n_received - (after.n_durable - before.n_durable)
        kills.append(Kill(n_in_flight, after.n_lost - before.n_lost))
        before = after
    endpoint.hold(None)
    draft(endpoint.url, home)
    return Draft(kills, _state(endpoint, home).n_lost, table_files(home) == expected)


def _draft_until(endpoint: MockEndpoint, home: Path, n_durable: float) -> None:
    """Kills the draft and all that it started as soon as so many calls are in the ledger, or it is done."""
    command = [sys.executable, "-m", "benchmarks.drafting", endpoint.url, str(home)]
    process = subprocess.Popen(command, start_new_session=True)
    while _n_durable(home) < n_durable and process.poll() is None:
        time.sleep(0.005)
    endpoint.kill(process.pid, process.wait)


def _state(endpoint: MockEndpoint, home: Path) -> State:
    counts = endpoint.counts()
    return State(counts["n_calls"], sum(counts["served"].values()), _n_durable(home))


def _n_durable(home: Path) -> int:
    with Ledger(f"sqlite:///{home / 'ledger.sqlite'}") as ledger:
        totals = ledger.totals()
    return totals["policy"].acts if totals else 0
