"""What the layer costs beside the bare client, how it fills an endpoint, and how it bears refusals."""

import tempfile
from pathlib import Path

from benchmarks.mock_endpoint import MockEndpoint
from benchmarks.rows import Bar, Row, count_row, median_row

N_CALLS = 2_000
SLOW_SECONDS = 2.0
"""How long a call takes where it is counted how many are in flight: at 50 ms no Python client can keep 250 in flight,
which would be 5,000 calls a second."""


def measure_throughput(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    ratios, cpu, bare_cpu, memory, rates, bare_rates = [], [], [], [], [], []
    for _ in range(2 if quick else 6):
        bare, ours = (_worked(endpoint, kind) for kind in ("bare", "darkroom"))
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
        median_row("memory, whole layer", memory, "MB", Bar("at most", 200)),
    ]


def measure_in_flight(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    _worked(endpoint, "darkroom", seconds=SLOW_SECONDS)
    note = f"as the server saw; each call takes {SLOW_SECONDS:g} s"
    return [count_row("calls in flight", endpoint.counts()["most_in_flight"], "calls", Bar("at least", 250), note)]


def measure_cap(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    shares = []
    for _ in range(1 if quick else 3):
        _worked(endpoint, "darkroom", cap=32)
        counts = endpoint.counts()
        shares.append(counts["n_rejected"] / counts["n_calls"] * 100)
    note = "Retry-After: 1; 429 comes at once"
    return [median_row("rejected calls, server takes 32 at once", shares, "%", Bar("at most", 5), note)]


def measure_refusals(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    n_refused, n_rows = 10, 1_000
    endpoint.reset()
    with tempfile.TemporaryDirectory() as folder:
        figures = endpoint.run("stage", Path(folder), n_rows, n_refused)
    counts = endpoint.counts()
    refused = set(counts["tries"]) - set(counts["served"])
    n_right = len(counts["served"])
    most_tries = max(counts["tries"][name] for name in refused)
    return [
        count_row("rows, 10 of 1,000 get 400 for ever", n_right, "rows", Bar("at least", n_rows - n_refused)),
        count_row("typed rejects", figures["n_rejects"], "rows", Bar("at least", n_refused)),
        count_row("tries of each of them", most_tries, "calls", Bar("at most", 1), f"{len(refused)} refused"),
    ]


def _worked(endpoint: MockEndpoint, kind: str, **settings: float) -> dict[str, float]:
    endpoint.reset(**settings)
    with tempfile.TemporaryDirectory() as folder:
        return endpoint.run(kind, Path(folder), N_CALLS)
