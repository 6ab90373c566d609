"""The command line of the experiments (``measurements/ablations/__init__.py``)."""

import argparse
import signal
from pathlib import Path

from darkroom.pipelines.processes.supervisor import die_with_parent
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.train.runs.command_line import guarded
from measurements.ablations import report
from measurements.ablations.catalog import EXPERIMENTS
from measurements.ablations.results import figures
from measurements.ablations.runner import run, run_seed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m measurements.ablations", description="The papers' ablations.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; --list shows them")
    parser.add_argument("root", nargs="?", type=Path, help="where rows, checkpoints and results lie")
    parser.add_argument("--seeds", type=int, nargs="+", default=[], help="default: those of the experiment")
    parser.add_argument("--list", action="store_true", help="list the experiments and end")
    parser.add_argument("--docs", type=Path, help="write the pages and their figures there, of all that is complete")
    parser.add_argument("--one-seed", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.list:
        for name, one in EXPERIMENTS.items():
            print(f"{name:20} {one.row.paper}, {one.row.where}: {one.title} ({len(one.arms)} arms)")
        return
    if options.root is None and options.names:  # argparse gives a single positional to `names`
        options.root = Path(options.names.pop())
    unknown = sorted(set(options.names) - EXPERIMENTS.keys())
    if unknown or options.root is None or not (options.names or options.docs):
        parser.error(f"expected NAME … OUT, names of {', '.join(EXPERIMENTS)}; found {' '.join(unknown) or 'none'}")
    chosen = [EXPERIMENTS[name] for name in options.names]
    with guarded():
        if options.one_seed is not None:
            die_with_parent(signal.SIGTERM)
            run_seed(options.root, options.one_seed, chosen)
            return
        if chosen:
            run(options.root, chosen, options.seeds)
    for one in chosen:
        found = figures(options.root, one)
        if found[one.arms[0].name]:
            print(f"\n{report.section(one, found)}")
            report.plot(one, found, options.root / f"{one.name}.png")
    if options.docs:
        everything = {name: figures(options.root, one) for name, one in EXPERIMENTS.items()}
        for name, found in everything.items():
            if found[EXPERIMENTS[name].arms[0].name]:
                report.plot(EXPERIMENTS[name], found, options.docs / f"images/{name}.png")
        earlier = {path.name: path.read_text() for path in sorted(options.docs.glob("reproductions*.md"))}
        for name, text in report.pages(everything, EXPERIMENTS, earlier).items():
            write_whole(options.docs / name, text)


if __name__ == "__main__":
    main()
