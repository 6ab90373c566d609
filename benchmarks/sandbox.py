"""Measures the sandbox against plain Python and against the bars that it promises.

    python benchmarks/sandbox.py                 # all of it, about six minutes
    python benchmarks/sandbox.py --quick         # a first impression, about one
    python benchmarks/sandbox.py --only spawn --only memory --json figures.json

CPU time is that of the whole process tree, this process included, and is what to trust; wall clock depends on what else
the machine does. Variants and their baseline take turns; a ratio compares two values of one turn, and the table shows
the median of the ratios and their middle half. Every result's pixels are compared with a reference.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # else `import sandbox` would find this file

from benchmarks.calls import measure_calls, measure_fresh, measure_spawn
from benchmarks.cpu import CLOCK_NAMES, cpu_clock
from benchmarks.fleet import measure_fleet, measure_idle_memory
from benchmarks.latency import measure_latency
from benchmarks.rows import Row
from benchmarks.task import make_photo

_MEASURES: dict[str, Callable[..., list[Row]]] = {
    "calls": measure_calls,
    "fresh": measure_fresh,
    "spawn": measure_spawn,
    "memory": measure_idle_memory,
    "latency": measure_latency,
    "fleet": measure_fleet,
}
_LIBRARIES = ("numpy", "pillow", "opencv-python-headless", "matplotlib")


def main() -> None:
    options = _parse_options()
    with tempfile.TemporaryDirectory() as folder, cpu_clock(options.clock) as clock:
        photo = Path(folder, "photo.jpg")
        make_photo(photo)
        machine = {**_machine(), "CPU time": clock.name, "photo": f"2000x1500, {photo.stat().st_size / 1e6:.2f} MB"}
        for name, value in machine.items():
            print(f"{name:24} {value}")
        print(f"\n{'what':60} {'measured (middle half)':>30} {'bar':>9}  met")
        rows: list[Row] = []
        for name in options.only or _MEASURES:
            for row in _MEASURES[name](clock, photo, quick=options.quick):
                rows.append(row)
                print(_line(row), flush=True)
    if options.json:
        figures = {"machine": machine, "rows": [_record(row) for row in rows]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if any(row.met is False for row in rows):
        sys.exit(1)


def _parse_options() -> argparse.Namespace:
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[*_MEASURES], help="measure this; repeat for more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--quick", action="store_true", help="fewer turns, 80 sessions instead of 1,000")
    parser.add_argument("--clock", choices=CLOCK_NAMES, help="what counts CPU time; by default the best that works")
    return parser.parse_args()


def _line(row: Row) -> str:
    spread = f"({row.least:.2f} to {row.most:.2f})" if row.least != row.most else ""
    measured = f"{row.measured:.2f} {row.unit} {spread}".strip()
    met = {None: "", True: "yes", False: "NO"}[row.met]
    return f"{row.what:60} {measured:>30} {row.bar or ''!s:>9}  {met:4} {row.note}".rstrip()


def _record(row: Row) -> dict[str, Any]:
    return {**vars(row), "bar": str(row.bar) if row.bar else None, "met": row.met}


def _machine() -> dict[str, str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return {
        "CPU": f"{os.cpu_count()} x {model}",
        "kernel": platform.release(),
        "user": "root" if os.geteuid() == 0 else "ordinary",
        "Python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


if __name__ == "__main__":
    main()
