"""Measures every stage that looks at all rows, each size and stage in a process of its own.

    python -m measurements.million                                      # 10,000 and 50,000 rows, some minutes
    python -m measurements.million --rows 10000 50000 200000 1000000    # hours, most of them to write the tables
    python -m measurements.million --stages screening texts --folder somewhere

CPU seconds of the stage alone, and the most that its process held (``ru_maxrss``), with what it held when the stage
began. With ``--folder`` tables are kept there and measured stages are not measured again (``results.jsonl``).
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from darkroom.pipelines.storage.workspace import Workspace
from measurements.million.stages import STAGES
from measurements.million.tables import make_home


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--folder", type=Path, help="where tables and results lie")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]))))
        return
    print(f"{platform.machine()}, Python {platform.python_version()}")
    print("| stage | rows | CPU s | CPU ms a row | of that at the first size | peak MB | at the start |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        measure_all(options.folder or Path(temporary), options.rows, options.stages)


def measure_all(folder: Path, sizes: list[int], stages: list[str]) -> None:
    """Prints a line for every stage and size."""
    results = folder / "results.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    measured = {(each["stage"], each["rows"]): each for each in known}
    for n_rows in sizes:
        home = folder / f"rows-{n_rows}"
        for stage in stages:
            if (stage, n_rows) not in measured:
                make_home(folder / "made", home, n_rows)
                command = [sys.executable, "-m", "measurements.million", "--measure", stage, str(home)]
                found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
                measured[stage, n_rows] = {"stage": stage, "rows": n_rows, **found}
                with results.open("a") as file:
                    file.write(json.dumps(measured[stage, n_rows]) + "\n")
            _print(measured[stage, n_rows], measured[stage, sizes[0]])


def _print(found: dict[str, float], smallest: dict[str, float]) -> None:
    per_row = 1000 * found["seconds"] / found["rows"]
    growth = per_row / (1000 * smallest["seconds"] / smallest["rows"])
    cells = (found["stage"], f"{found['rows']:,}", f"{found['seconds']:.1f}", f"{per_row:.3f}", f"{growth:.2f}")
    print("|", " | ".join((*cells, f"{found['peak_mb']:.0f}", f"{found['start_mb']:.0f}")), "|", flush=True)


def measure(stage: str, home: Path) -> dict[str, float]:
    """One stage of the home's tables: CPU seconds, and memory at the start and at most."""
    import datasets  # noqa: F401  # what stages import is no growth
    import datasketch  # noqa: F401

    partitions = sorted(path.stem for path in (home / "tables" / "samples").glob("*-0????.parquet"))
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        start, began = _peak_mb(), time.process_time()
        STAGES[stage](workspace, partitions)
        seconds = time.process_time() - began
    return {"seconds": seconds, "start_mb": start, "peak_mb": _peak_mb()}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    main()
