"""The table that a benchmark prints and the file that it may write; where it ran."""

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measurements.rows import Row


def report(machine: Mapping[str, str], measures: Iterable[Callable[[], list[Row]]], file: Path | None) -> int:
    """Prints every row as soon as it is measured. The exit status: 1 when a bar is not met."""
    for name, value in machine.items():
        print(f"{name:24} {value}")
    print(f"\n{'what':60} {'measured (middle half)':>30} {'bar':>9}  met")
    rows: list[Row] = []
    for measure in measures:
        for row in measure():
            rows.append(row)
            print(_line(row), flush=True)
    if file:
        file.write_text(json.dumps({"machine": machine, "rows": [_record(row) for row in rows]}, indent=2) + "\n")
    return int(any(row.met is False for row in rows))


def parser_of(doc: str) -> argparse.ArgumentParser:
    """The parser of a program whose module has the text ``doc``."""
    summary, _, details = doc.partition("\n\n")
    return argparse.ArgumentParser(
        description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def options_of(doc: str, only: Iterable[str], quick: str) -> argparse.ArgumentParser:
    """The options of every program with bars; ``only``: what it measures."""
    parser = parser_of(doc)
    parser.add_argument("--only", action="append", choices=[*only], help="measure this; repeat for more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def describe_machine(libraries: Iterable[str]) -> dict[str, str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return {
        "CPU": f"{os.cpu_count()} x {model}",
        "kernel": platform.release(),
        "user": "root" if os.geteuid() == 0 else "ordinary",
        "Python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }


def _line(row: Row) -> str:
    spread = f"({row.least:.2f} to {row.most:.2f})" if row.least != row.most else ""
    measured = f"{row.measured:.2f} {row.unit} {spread}".strip()
    met = {None: "", True: "yes", False: "NO"}[row.met]
    return f"{row.what:60} {measured:>30} {row.bar or ''!s:>9}  {met:4} {row.note}".rstrip()


def _record(row: Row) -> dict[str, Any]:
    return {**vars(row), "bar": str(row.bar) if row.bar else None, "met": row.met}
