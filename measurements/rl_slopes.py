"""What the runs come to: speed by size, whether time and memory grow with rows, and what the layer costs."""

import statistics

from measurements.rl_runs import MIDDLE, SMALL, Figures, Runs, together
from measurements.rows import Bar, Row, count_row, median_row

_LINEAR = Bar("at most", 1.10)
_FLAT = Bar("at most", 1.05)


def rows_of(runs: Runs) -> list[Row]:
    small = [turn.small for turn in runs.turns]
    sizes = {SMALL: small, MIDDLE: runs.middle, runs.n_most: runs.shards}
    speed = [row for n_rows, made in sizes.items() if made for row in _speed_rows(runs.way, n_rows, made)]
    return [*speed, *_slope_rows(runs), *_memory_rows(runs), *_cost_rows(runs)]


def _speed_rows(way: str, n_rows: int, made: list[Figures]) -> list[Row]:
    return [
        median_row(f"{way}: {n_rows:,} problems, wall", [one.rows_per_second for one in made], "rows/s"),
        median_row(f"{way}: {n_rows:,} problems, CPU per row", [one.cpu_ms_per_row for one in made], "ms"),
    ]


def _slope_rows(runs: Runs) -> list[Row]:
    cpu = [together(turn.largest).cpu_ms_per_row / turn.small.cpu_ms_per_row for turn in runs.turns]
    wall = [turn.small.rows_per_second / together(turn.largest).rows_per_second for turn in runs.turns]
    quarter = len(cpu) // 4
    what = f"{runs.way}: CPU per row, {runs.n_most:,} over {SMALL:,} problems"
    return [
        median_row(what, cpu, "x", _LINEAR, note="neighbours in time"),
        median_row("the same, last quarter of the rows", cpu[-quarter:], "x", _LINEAR),
        median_row("the same, first quarter of the rows", cpu[:quarter], "x"),
        median_row("the same, wall clock", wall, "x"),
    ]


def _memory_rows(runs: Runs) -> list[Row]:
    shards = runs.shards
    first, second, last = shards[0], shards[len(shards) // 4 : len(shards) // 2], shards[-(len(shards) // 4) :]
    ratio = statistics.median(one.peak_mb for one in last) / statistics.median(one.peak_mb for one in second)
    return [
        count_row(f"{runs.way}: memory after the first shard", first.memory_mb, "MB"),
        median_row("memory after a shard, last quarter", [one.memory_mb for one in last], "MB"),
        median_row("peak within a shard, last quarter", [one.peak_mb for one in last], "MB"),
        count_row("peak, last quarter over second quarter", ratio, "x", _FLAT),
    ]


def _cost_rows(runs: Runs) -> list[Row]:
    over = [turn.small.cpu_ms_per_row / turn.bare.cpu_ms_per_row for turn in runs.turns]
    bare = [turn.bare.cpu_ms_per_row for turn in runs.turns]
    return [
        count_row(f"{runs.way}: ledger per vote", runs.ledger_bytes_per_vote, "bytes"),
        median_row("CPU per row, bare aiohttp", bare, "ms"),
        median_row("CPU per row, stage over bare aiohttp", over, "x"),
    ]
