"""Calls with images beside bare clients: CPU time and calls in flight."""

import tempfile
from pathlib import Path

from measurements.mock_endpoint import MockEndpoint
from measurements.policy_client import store_images
from measurements.rows import Bar, Row, count_row, median_row

N_IMAGE_CALLS, N_FLIGHT_CALLS, CALLS_PER_IMAGE = 300, 1_600, 8
N_IN_FLIGHT = 200
"""Calls at once, of 256 that are allowed, at calls of 200 ms and more."""


def measure_images(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    """One turn after the other of each client: ratios are of one turn."""
    rows = []
    for calls_per_image, says in ((1, "one call each"), (CALLS_PER_IMAGE, f"{CALLS_PER_IMAGE} calls each")):
        figures: dict[str, list[float]] = {kind: [] for kind in ("aiohttp", "bare", "darkroom")}
        for _ in range(2 if quick else 5):
            for kind, cpu in figures.items():
                cpu.append(_cpu(endpoint, kind, N_IMAGE_CALLS, N_IMAGE_CALLS // calls_per_image))
        over = {
            kind: [ours / theirs for ours, theirs in zip(figures["darkroom"], figures[kind], strict=True)]
            for kind in ("aiohttp", "bare")
        }
        what = f"images of 308 kB, {says}"
        rows += [median_row(f"{what}: CPU per 1,000 calls, {kind}", cpu, "s") for kind, cpu in figures.items()]
        rows.append(median_row(f"{what}: CPU, whole layer over aiohttp", over["aiohttp"], "x", Bar("at most", 1.3)))
        rows.append(median_row(f"{what}: CPU, whole layer over bare openai client", over["bare"], "x"))
    return rows


def measure_image_flight(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    rows = []
    for seconds in (0.2, 2.0):
        for kind, name in (("aiohttp", "bare aiohttp"), ("darkroom", "whole layer")):
            _cpu(endpoint, kind, N_FLIGHT_CALLS, N_FLIGHT_CALLS // CALLS_PER_IMAGE, seconds=seconds)
            typical, most = endpoint.typical_in_flight(), endpoint.counts()["most_in_flight"]
            bar = Bar("at least", N_IN_FLIGHT) if kind == "darkroom" else None
            rows.append(count_row(f"images: most calls in flight, {seconds:g} s a call, {name}", most, "calls", bar))
            rows.append(count_row(f"the same, half of the time, {name}", typical, "calls"))
    return rows


def _cpu(endpoint: MockEndpoint, kind: str, n_calls: int, n_images: int, *, seconds: float = 0.05) -> float:
    """Seconds per 1,000 calls."""
    endpoint.reset(seconds=seconds)
    with tempfile.TemporaryDirectory() as folder:
        store_images(Path(folder), n_images)
        cpu = float(endpoint.run(kind, Path(folder), n_calls)["cpu_seconds"])
    return cpu / n_calls * 1000
