"""Shards on a Ray cluster: what three workers make of an endpoint beside one; what is left of a build with kills.

    python -m tests.soak.cluster --shards 3            # by one worker, then by three
    python -m tests.soak.cluster --shards 3 --workers 1
    python -m tests.soak.cluster kills --rows 3 --seconds 0.5         # 50 of them

All parts, the endpoint included, are processes of this machine (tests/soak/cluster_site.py). For rates, a shard must
keep the endpoint busy for longer than the cores need to start its run, or they are the limit: 20 rows of three calls
of 2 s, two at a time (--calls 2), are 60 s. Kills are described in tests/soak/cluster_kills.py. Progress is on stderr.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from measurements.report import describe_machine, parser_of, report
from measurements.rows import Bar, Row, count_row
from tests.soak.cluster_kills import PARTS, DisturbedBuild, build_with_kills, moments
from tests.soak.cluster_site import Load, cluster_site

_LIBRARIES = ("ray", "dagster", "dagster-ray", "s3fs")
_AWAY_SECONDS = 2.0


def measure(load: Load, workers: Sequence[int]) -> list[Row]:
    """Rows/s from the first run's launch to the last one's end, of so many workers; each has as many shards."""
    shards = {n: max(1, load.n_shards * n // max(workers)) for n in workers}
    rates = {n: _rows_per_second(replace(load, n_shards=shards[n]), n) for n in workers}
    rows = [count_row(f"{n} workers: rows/s", rate, "1/s", note=note) for n, (rate, note) in rates.items()]
    if {1, 3} <= rates.keys():
        rows.append(count_row("three workers over one", rates[3][0] / rates[1][0], "x", Bar("at least", 2.5)))
    return rows


def _rows_per_second(load: Load, n_workers: int) -> tuple[float, str]:
    """And where the workers' time goes."""
    with tempfile.TemporaryDirectory() as folder, cluster_site(Path(folder), load, n_workers=n_workers) as site:
        with site.building() as command:
            if command.wait():
                raise SystemExit(site.said)
        stats = [site.instance.get_run_stats(record.dagster_run.run_id) for record in site.runs()]
        calls = site.endpoint.counts()["seconds_with"]
    times = [(each.launch_time or 0.0, each.start_time or 0.0, each.end_time or 0.0) for each in stats]
    seconds = max(end for *_, end in times) - min(launch for launch, *_ in times)
    working = sum(end - start for _, start, end in times) / n_workers
    calling = sum(int(n) * span for n, span in calls.items()) / n_workers
    note = (
        f"{load.n_shards} shards, {seconds:.0f} s, of which a worker works on runs {working / seconds:.0%}, with "
        f"{calling / seconds:.1f} calls in flight on average; load of the machine {os.getloadavg()[2]:.1f}"
    )
    _say(f"{n_workers} workers: {load.n_shards * load.n_rows / seconds:.2f} rows/s in {note}")
    return load.n_shards * load.n_rows / seconds, note


def measure_kills(load: Load, n_workers: int, n_kills: int, seed: int) -> list[Row]:
    """What is wrong after a build with kills, and what they cost."""
    with tempfile.TemporaryDirectory() as folder, cluster_site(Path(folder), load, n_workers=n_workers) as site:
        build = DisturbedBuild.begin(site, load)
        _say(f"{len(build.calls)} calls; load of the machine {os.getloadavg()[2]:.1f}")
        planned = moments(n_kills, len(build.calls), seed)
        n_commands = build_with_kills(build, planned, _AWAY_SECONDS, say=_say)
        problems = build.problems()
        _say(f"what is wrong: {'; '.join(problems) or 'nothing'}")
        n_runs, n_paid_again = len(site.runs()), build.n_paid_again
    by_part = ", ".join(f"{part} {build.kills[part]}" for part in PARTS)
    load_now = f"load of the machine {os.getloadavg()[2]:.1f}"
    return [
        count_row("kills", build.kills.total(), "", Bar("at least", n_kills), note=f"{by_part}; {load_now}"),
        count_row("things that are not as undisturbed", len(problems), "", Bar("at most", 0), note="; ".join(problems)),
        count_row("answers paid twice", n_paid_again, "", Bar("at most", build.n_in_flight), f"of {len(build.calls)}"),
        count_row("runs", n_runs, "", note=f"of {load.n_shards} shards; the command was given {n_commands} times"),
    ]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    options = _parse_options()
    load = Load(options.shards, options.rows, options.seconds, options.calls)
    if options.what == "kills":
        measured = partial(measure_kills, load, max(options.workers), options.kills, options.seed)
    else:
        measured = partial(measure, load, options.workers)
    sys.exit(report(describe_machine(_LIBRARIES), [measured], None))


def _parse_options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("what", nargs="?", choices=("rates", "kills"), default="rates")
    parser.add_argument("--shards", type=int, default=60, help="for the most workers; fewer build as many each")
    parser.add_argument("--rows", type=int, default=120, help="of a shard")
    parser.add_argument("--seconds", type=float, default=2.0, help="that the endpoint takes for a call")
    parser.add_argument(
        "--calls", type=int, default=4, help="that a worker's policy has in flight at most, and its judge"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=20261126, help="of the kills' moments and order")
    return parser.parse_args()


if __name__ == "__main__":
    main()
