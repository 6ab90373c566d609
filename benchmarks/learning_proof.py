"""The learning proof: does a tiny model learn to look through code, from the rows and the programs of this toolkit?

    python -m benchmarks.learning_proof data/learning_proof                       # three seeds
    python -m benchmarks.learning_proof data/learning_proof --figure docs/images/learning_proof.png

Rows are made first (``proof_rows.py``), training rows and held-out rows of other walls; then every seed's models are
trained and evaluated (``proof_seed.py``), one more at a time than there are cores. What is complete is not made again:
a second run only prints the same table, and one that was killed goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.proof_seed import MODELS

N_AT_ONCE = (os.cpu_count() or 1) + 1
"""Programs: while one waits for its sandbox, another computes."""
_TRAINED, _HELD_OUT = ("--walls", "50", "--seed", "1000"), ("--walls", "16", "--seed", "6000")
ROWS = {"train": _TRAINED, "closeups": (*_TRAINED, "--closeups"), "held_out": _HELD_OUT}
"""The folders of the rows, and which walls they are of."""
SEEDS = (0, 1, 2)
NAMES = {
    "untrained": "untrained",
    "unmasked": "SFT without masks",
    "masked": "SFT",
    "grpo": "SFT, then GRPO",
}
COLOURS = {"untrained": "#999999", "unmasked": "#c2703d", "masked": "#4c78a8", "grpo": "#2f6f4f"}
PANELS = {"executed": "rollouts with a program that ran", "right": "right answers"}
CHANCE = 0.2
"""There are five colours of signs."""
Figures = Sequence[dict[str, Any]]
"""Of every seed what ``proof_seed.py`` writes, by the names of the models."""


def prove(root: Path, *, seeds: Sequence[int] = SEEDS) -> Figures:
    """Makes what is missing below ``root`` and returns all figures. Raises ``CalledProcessError``."""
    with ThreadPoolExecutor(N_AT_ONCE) as pool:
        list(pool.map(_run, (["benchmarks.proof_rows", str(root / name), *given] for name, given in ROWS.items())))

        def begin(seed: int, *models: str) -> Future[None]:
            return pool.submit(_run, ["benchmarks.proof_seed", str(root), str(seed), *models])

        untrained = {begin(seed, "untrained"): seed for seed in seeds}
        trained = []
        for one in as_completed(untrained):
            one.result()
            trained.append(begin(untrained[one], "masked", "grpo"))
        # the shortest last: then no core is idle for long
        for one in [*trained, *(begin(seed, "unmasked") for seed in seeds)]:
            one.result()
    return [{name: json.loads((root / f"seed-{seed}/{name}.json").read_text()) for name in MODELS} for seed in seeds]


def table(figures: Figures) -> str:
    """Markdown: a line per model, each share as the mean over seeds with the least and the greatest."""
    lines = [
        "| model | program ran | right | no answer |",
        "| --- | --- | --- | --- |",
    ]
    for model in MODELS:
        cells = [_spread([one[model][share] for one in figures]) for share in ("executed", "right", "unanswered")]
        lines.append(f"| {NAMES[model]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def controls(figures: Figures) -> str:
    """Markdown: how many right answers of the last model change when its crop is replaced, over all seeds."""
    found = [one["grpo"]["controls"] for one in figures]
    lines = ["| instead of the crop | rollouts | answers that change | of right ones |", "| --- | --- | --- | --- |"]
    for control in found[0]:
        of_seeds = [one[control] for one in found if control in one]
        n = sum(one["n"] for one in of_seeds)
        changed, of_right = (_spread([one[key]["mean"] for one in of_seeds]) for key in ("changed", "changed_right"))
        lines.append(f"| {control.replace('_', ' ')} | {n} | {changed} | {of_right} |")
    return "\n".join(lines)


def plot(figures: Figures, path: Path) -> None:
    """Two panels, greedy: every seed a point, the mean a bar."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.2), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (what, title) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        for place, model in enumerate(MODELS):
            values = [one[model][what] for one in figures]
            axes.bar(place, fmean(values), color=COLOURS[model], width=0.62, alpha=0.85)
            axes.vlines(place, min(values), max(values), color="#1d2127", linewidth=1.2)
            axes.plot([place] * len(values), values, "o", color="#1d2127", markersize=4)
        if what == "right":
            axes.axhline(CHANCE, color="#666666", linestyle=":", linewidth=1)
            axes.set_xlabel("dotted: guessing among five colours", fontsize=8, color="#666666")
        axes.set(ylim=(0, 1.02), title=title)
        axes.set_xticks(range(len(MODELS)), [NAMES[model].replace(" ", "\n", 1) for model in MODELS], fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _run(command: Sequence[str]) -> None:
    started = time.monotonic()
    log = _new_log(Path(command[1]), "-".join(Path(part).name for part in command))
    with log.open("w") as file:
        done = subprocess.run([sys.executable, "-m", *command], stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}; what it said is in {log}")
    print(f"{' '.join(command)}: {time.monotonic() - started:.0f} s", flush=True)


def _new_log(folder: Path, name: str) -> Path:
    """A file that no earlier run wrote: what a failed one said is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    names = (f"{name}.{number}.log" if number > 1 else f"{name}.log" for number in count(1))
    return next(folder / name for name in names if not (folder / name).exists())


def _spread(shares: Sequence[float]) -> str:
    least, most = min(shares), max(shares)
    return f"{fmean(shares):.0%}" + (f" ({least:.0%} – {most:.0%})" if least != most else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path, help="where rows, checkpoints and evaluations lie")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--figure", type=Path, help="write the figure there; default: ROOT/learning_proof.png")
    options = parser.parse_args()
    started = time.monotonic()
    figures = prove(options.root, seeds=options.seeds)
    plot(figures, options.figure or options.root / "learning_proof.png")
    print(f"\n{table(figures)}\n\n{controls(figures)}\n\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
