"""Measures the sandbox against plain Python and against the bars that it promises.

    python -m measurements.sandbox                 # all of it, about eight minutes
    python -m measurements.sandbox --quick         # a first impression, about one
    python -m measurements.sandbox --only latency --load 8
    python -m measurements.sandbox --only spawn --only memory --json figures.json

CPU time is that of the whole process tree, this process included, and is what to trust; wall clock depends on what else
the machine does. Variants and their baseline take turns; a ratio compares two values of one turn, and the table shows
the median of the ratios and their middle half. Every result's pixels are compared with a reference.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # else `import sandbox` would find this file

from measurements.calls import measure_calls, measure_fresh, measure_spawn
from measurements.cpu import CLOCK_NAMES, busy_machine, cpu_clock
from measurements.fleet import measure_fleet, measure_idle_memory
from measurements.latency import measure_latency
from measurements.report import describe_machine, options_of, report
from measurements.rows import Row
from measurements.task import make_photo
from measurements.workers import measure_workers

_MEASURES: dict[str, Callable[..., list[Row]]] = {
    "calls": measure_calls,
    "fresh": measure_fresh,
    "spawn": measure_spawn,
    "memory": measure_idle_memory,
    "latency": measure_latency,
    "workers": measure_workers,
    "fleet": measure_fleet,
}
_LIBRARIES = ("numpy", "pillow", "opencv-python-headless", "matplotlib")


def main() -> None:
    options = _parse_options()
    with tempfile.TemporaryDirectory() as folder, busy_machine(options.load), cpu_clock(options.clock) as clock:
        photo = Path(folder, "photo.jpg")
        make_photo(photo)
        machine = {
            **describe_machine(_LIBRARIES),
            "CPU time": clock.name,
            "beside it": f"{options.load} processes that compute",
            "photo": f"2000x1500, {photo.stat().st_size / 1e6:.2f} MB",
        }
        measures = (partial(_MEASURES[name], clock, photo, quick=options.quick) for name in options.only or _MEASURES)
        sys.exit(report(machine, measures, options.json))


def _parse_options() -> argparse.Namespace:
    parser = options_of(__doc__, _MEASURES, "fewer turns, 80 sessions instead of 1,000")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="so many processes that compute beside it")
    parser.add_argument("--clock", choices=CLOCK_NAMES, help="what counts CPU time; by default the best that works")
    return parser.parse_args()


if __name__ == "__main__":
    main()
