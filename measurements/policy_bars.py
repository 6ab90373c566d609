"""The layer's cost beside the bare client, and its use of an endpoint's places."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measurements.policy_client import IN_ALL, store_images
from measurements.rows import Bar, Row, count_row, median_row
from tests.mock_endpoint import MockEndpoint

Figures = dict[str, float]
N_CALLS = 2_000
N_CALLS_OF_THREE = 500
"""Calls of each of three processes."""
FLIGHTS = {0.05: 4_000, 0.2: 4_000, 2.0: 5_000}
"""Seconds that a call takes, and how many calls are made, where it is counted how many are in flight."""
N_IN_FLIGHT = 250
"""With calls of 2 s, which a model takes at least: 250 of 50 ms are 5,000 a second, more than Python can send."""


def measure_throughput(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    ratios, cpu, bare_cpu, least_ratios, memory, rates, bare_rates = [], [], [], [], [], [], []
    for _ in range(2 if quick else 6):
        least, bare, ours = (worked(endpoint, kind) for kind in ("aiohttp", "bare", "darkroom"))
        least_ratios.append(ours["cpu_seconds"] / least["cpu_seconds"])
        bare_rates.append(N_CALLS / bare["seconds"])
        rates.append(N_CALLS / ours["seconds"])
        ratios.append(rates[-1] / bare_rates[-1])
        bare_cpu.append(bare["cpu_seconds"] / N_CALLS * 1000)
        cpu.append(ours["cpu_seconds"] / N_CALLS * 1000)
        memory.append(ours["memory_mb"])
    return [
        median_row("rows/s, whole layer over bare openai client", ratios, "x", Bar("at least", 0.85)),
        median_row("rows/s, whole layer", rates, "rows/s"),
        median_row("rows/s, bare openai client", bare_rates, "rows/s"),
        median_row("CPU per 1,000 calls, whole layer", cpu, "s", Bar("at most", 3)),
        median_row("CPU per 1,000 calls, bare openai client", bare_cpu, "s"),
        median_row("CPU per call, whole layer over bare aiohttp", least_ratios, "x"),
        median_row("memory, whole layer", memory, "MB", Bar("at most", 200)),
    ]


def measure_in_flight(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    bars = {max(FLIGHTS): Bar("at least", N_IN_FLIGHT)}
    return [row for seconds, n in FLIGHTS.items() for row in flight(endpoint, "", seconds, n, bar=bars.get(seconds))]


def flight(
    endpoint: MockEndpoint, what: str, seconds: float, n_calls: int, n_images: int = 0, *, bar: Bar | None
) -> list[Row]:
    """Calls in flight of both clients at so many seconds a call; ``bar`` is the whole layer's."""
    rows = []
    for kind, name in (("aiohttp", "bare aiohttp"), ("darkroom", "whole layer")):
        figures = worked(endpoint, kind, n_calls, n_images, seconds=seconds)
        cpu, rate = figures["cpu_seconds"] / n_calls * 1e3, n_calls / figures["seconds"]
        note = f"{cpu:.2f} ms CPU a call, {rate:.0f} a second"
        typical, most = endpoint.typical_in_flight(), endpoint.counts()["most_in_flight"]
        own_bar = bar if kind == "darkroom" else None
        rows.append(
            count_row(f"{what}most calls in flight, {seconds:g} s a call, {name}", most, "calls", own_bar, note)
        )
        rows.append(count_row(f"the same, half of the time, {name}", typical, "calls"))
    return rows


def measure_cap(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    shares = []
    for _ in range(1 if quick else 3):
        worked(endpoint, "darkroom", cap=32)
        counts = endpoint.counts()
        shares.append(counts["n_rejected"] / counts["n_calls"] * 100)
    return [median_row("rejected calls, 32 at once, Retry-After: 1", shares, "%", Bar("at most", 5))]


def measure_sharing(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    rows = []
    for kind, says in (("darkroom", "each by itself"), ("shared", f"{IN_ALL} in all")):
        refused, used = zip(*(_three_at_once(endpoint, kind) for _ in range(1 if quick else 3)), strict=True)
        bars = (Bar("at most", 5), Bar("at least", 90)) if kind == "shared" else (None, None)
        what = f"three processes, server takes {IN_ALL} at once, {says}"
        rows.append(median_row(f"{what}: rejected calls", list(refused), "%", bars[0], "1 s a call"))
        rows.append(median_row(f"{what}: calls in flight, of what it takes", list(used), "%", bars[1]))
    return rows


def _three_at_once(endpoint: MockEndpoint, kind: str) -> tuple[float, float]:
    """Rejected calls, and the mean of those in flight while any was, in %."""
    endpoint.reset(cap=IN_ALL, seconds=1.0)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(3) as pool:
        folders = [Path(folder) / ("ledger" if kind == "shared" else str(number)) for number in range(3)]
        for path in folders:
            path.mkdir(exist_ok=True)
        list(pool.map(lambda path: endpoint.run(kind, path, N_CALLS_OF_THREE), folders))
    counts = endpoint.counts()
    seconds = {int(n): seconds for n, seconds in counts["seconds_with"].items() if int(n)}
    mean = sum(n * each for n, each in seconds.items()) / sum(seconds.values())
    return counts["n_rejected"] / counts["n_calls"] * 100, mean / IN_ALL * 100


def worked(endpoint: MockEndpoint, kind: str, n_calls: int = N_CALLS, n_images: int = 0, **settings: float) -> Figures:
    endpoint.reset(**settings)
    with tempfile.TemporaryDirectory() as folder:
        store_images(Path(folder), n_images)
        return endpoint.run(kind, Path(folder), n_calls)
