"""A stage that is killed at a random moment and run again: what is paid twice, and whether the tables are the same."""

import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mock_endpoint import MockEndpoint
from benchmarks.policy_client import CONCURRENCY
from benchmarks.rows import Bar, Row, count_row, median_row
from pipelines.ledger import Ledger

N_ROWS = 1_000
SEED = 20261121


@dataclass(frozen=True)
class Kill:
    """What a kill left, and what running again made of it."""

    n_served: int
    n_in_flight: int
    """Calls that had been sent and whose result was not yet in the ledger."""
    n_paid_twice: int
    same_tables: bool


def measure_kills(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    n_kills, chance = (5 if quick else 20), random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        endpoint.reset()
        endpoint.run("stage", Path(folder), N_ROWS)
        expected = _tables(Path(folder))
    kills = [_kill(endpoint, chance.uniform(0.02, 0.98), expected) for _ in range(n_kills)]
    excess = max(kill.n_paid_twice - kill.n_in_flight for kill in kills)
    most = max(kill.n_paid_twice for kill in kills)
    same = sum(kill.same_tables for kill in kills)
    return [
        median_row("calls served at the kill", [kill.n_served for kill in kills], "calls", note=f"{n_kills} kills"),
        median_row("calls in flight at the kill", [kill.n_in_flight for kill in kills], "calls"),
        median_row("calls paid twice", [kill.n_paid_twice for kill in kills], "calls"),
        count_row("paid twice, worst kill", most, "calls", Bar("at most", CONCURRENCY), "bar: the concurrency"),
        count_row("paid twice beyond those in flight, worst kill", excess, "calls", Bar("at most", 0)),
        count_row("kills with the same tables, byte for byte", same, "kills", Bar("at least", n_kills)),
    ]


def _kill(endpoint: MockEndpoint, share: float, expected: dict[str, bytes]) -> Kill:
    """Kills a stage after ``share`` of its calls and runs it again."""
    endpoint.reset()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = endpoint.start("stage", folder, N_ROWS)
        while sum(endpoint.counts()["served"].values()) < share * N_ROWS and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        counts, n_durable = endpoint.counts(), _n_durable(folder)
        endpoint.run("stage", folder, N_ROWS)
        repeated = sum(endpoint.counts()["served"].values()) - N_ROWS
        n_in_flight = counts["n_calls"] - n_durable
        return Kill(sum(counts["served"].values()), n_in_flight, repeated, _tables(folder) == expected)


def _n_durable(folder: Path) -> int:
    with Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
        totals = ledger.totals()
    return totals["policy"].acts if totals else 0


def _tables(folder: Path) -> dict[str, bytes]:
    root = folder / "tables"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}
