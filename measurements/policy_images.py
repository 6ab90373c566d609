"""Calls with images beside bare clients: CPU time, calls in flight, and a minute with all of them."""

from measurements.policy_bars import flight, worked
from measurements.rows import Bar, Row, count_row, median_row
from tests.mock_endpoint import MockEndpoint

N_IMAGE_CALLS, N_FLIGHT_CALLS, CALLS_PER_IMAGE = 300, 1_600, 8
N_MINUTE_CALLS, N_SHARED_IMAGES = 10_000, 64
N_IN_FLIGHT = 200
"""Calls at once, of 256 that are allowed, at calls of 200 ms and more."""


def measure_images(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    """One turn after the other of each client: ratios are of one turn."""
    rows = []
    shared = N_IMAGE_CALLS // CALLS_PER_IMAGE
    for n_images, says in ((N_IMAGE_CALLS, "one call each"), (shared, f"{CALLS_PER_IMAGE} calls each")):
        figures: dict[str, list[float]] = {kind: [] for kind in ("aiohttp", "bare", "darkroom")}
        for _ in range(2 if quick else 5):
            for kind, cpu in figures.items():
                cpu.append(worked(endpoint, kind, N_IMAGE_CALLS, n_images)["cpu_seconds"] / N_IMAGE_CALLS * 1000)
        over = {
            kind: [ours / theirs for ours, theirs in zip(figures["darkroom"], figures[kind], strict=True)]
            for kind in ("aiohttp", "bare")
        }
        what = f"images of 308 kB, {says}"
        rows += [median_row(f"{what}: CPU per 1,000 calls, {kind}", cpu, "s") for kind, cpu in figures.items()]
        rows.append(median_row(f"{what}: CPU, whole layer over aiohttp", over["aiohttp"], "x", Bar("at most", 2)))
        rows.append(median_row(f"{what}: CPU, whole layer over bare openai client", over["bare"], "x"))
    return rows


def measure_image_flight(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    n_images, bar = N_FLIGHT_CALLS // CALLS_PER_IMAGE, Bar("at least", N_IN_FLIGHT)
    flights = (flight(endpoint, "images: ", seconds, N_FLIGHT_CALLS, n_images, bar=bar) for seconds in (0.2, 2.0))
    return [row for rows in flights for row in rows]


def measure_minute(endpoint: MockEndpoint, *, quick: bool) -> list[Row]:
    n_calls = N_MINUTE_CALLS // 10 if quick else N_MINUTE_CALLS
    figures = worked(endpoint, "darkroom", n_calls, N_SHARED_IMAGES)
    cpu, n_served = figures["cpu_seconds"] / n_calls * 1e3, len(endpoint.counts()["served"])
    note = f"{cpu:.2f} ms CPU a call, {figures['seconds']:.0f} s"
    what, memory = f"{n_calls:,} calls of 50 ms with {N_SHARED_IMAGES} images", round(figures["memory_mb"])
    rows = [count_row(f"{what}: memory", memory, "MB", Bar("at most", 400), note)]
    return [*rows, count_row(f"{what}: answered", n_served, "calls", Bar("at least", n_calls))]
