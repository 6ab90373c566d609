"""Measures eight votes on each of 1,000, 10,000 and 100,000 problems, shard by shard: time, its slope, and memory.

    python -m measurements.rl_votes                          # both ways of asking
    python -m measurements.rl_votes --quick                  # a first impression: no more than 10,000 problems
    python -m measurements.rl_votes --only n --json figures.json

The stage is the real one, with its tables and its ledger (SQLite), in a process of its own; it asks a mock endpoint in
another process, over HTTP: once for all eight (`n`), or eight times (`single`). Between the shards of the largest run
stand runs of the other sizes and of a bare aiohttp client, each in a fresh process and a fresh folder: ratios compare
neighbours. What a process does first (500 problems) is not counted. Slopes are of CPU time, which other work on the
machine disturbs less than the wall clock.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measurements.mock_endpoint import MockEndpoint
from measurements.report import describe_machine, options_of, report
from measurements.rl_runs import Way, vote_on
from measurements.rl_slopes import rows_of
from measurements.rows import Row

WAYS: tuple[Way, ...] = ("n", "single")
_LIBRARIES = ("openai", "aiohttp", "sqlalchemy", "pyarrow")


def main() -> None:
    options = options_of(__doc__, WAYS, "10,000 problems at most").parse_args()
    n_most = 10_000 if options.quick else 100_000
    machine = describe_machine(_LIBRARIES) | {"load when it began": f"{os.getloadavg()[0]:.1f}"}
    with MockEndpoint() as endpoint:
        measures: list[Callable[[], list[Row]]] = [
            partial(_measure, endpoint, way, n_most) for way in options.only or WAYS
        ]
        sys.exit(report(machine, measures, options.json))


def _measure(endpoint: MockEndpoint, way: Way, n_most: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return rows_of(vote_on(endpoint, way, n_most, Path(folder)))


if __name__ == "__main__":
    main()
