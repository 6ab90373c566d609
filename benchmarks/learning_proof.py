"""The learning proof: does a tiny model learn to look through code, from the rows and the programs of this toolkit?

    python -m benchmarks.learning_proof data/learning_proof                       # three seeds, about ten minutes
    python -m benchmarks.learning_proof data/learning_proof --figure docs/images/learning_proof.png

Rows are made first (``proof_rows.py``), training rows and held-out rows of other walls; then every seed is trained and
evaluated (``proof_seed.py``), two at a time, each on one core. What is complete is not made again: a second run prints
the same table at once, and one that was killed goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.proof_seed import MODELS

N_CORES = 2
N_WALLS = {"train": 70, "held_out": 20}
WALL_SEEDS = {"train": 1000, "held_out": 2000}
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
"""One entry per seed, as ``proof_seed.py`` writes it."""


def prove(root: Path, *, seeds: Sequence[int] = SEEDS) -> Figures:
    """Makes what is missing below ``root`` and returns all figures. Raises ``CalledProcessError``."""
    rows = [
        ["benchmarks.proof_rows", str(root / name), "--walls", str(n), "--seed", str(WALL_SEEDS[name])]
        for name, n in N_WALLS.items()
    ]
    _run(rows)
    _run([["benchmarks.proof_seed", str(root), str(seed)] for seed in seeds])
    return [json.loads((root / f"seed-{seed}/figures.json").read_text()) for seed in seeds]


def table(figures: Figures) -> str:
    """Markdown: a line per model, each share as the mean over seeds with the least and the greatest."""
    lines = [
        "| model | program ran | right | no answer | program ran, sampled | right, sampled |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    columns = [("greedy", "executed"), ("greedy", "right"), ("greedy", "unanswered")]
    columns += [("sampled", "executed"), ("sampled", "right")]
    for model in MODELS:
        cells = [_spread([one["models"][model][how][what] for one in figures]) for how, what in columns]
        lines.append(f"| {NAMES[model]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def controls(figures: Figures) -> str:
    """Markdown: how many right answers of the last model change when its crop is replaced, over all seeds."""
    found = [one["models"]["grpo"]["greedy"]["controls"] for one in figures]
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
            values = [one["models"][model]["greedy"][what] for one in figures]
            axes.bar(place, fmean(values), color=COLOURS[model], width=0.62, alpha=0.85)
            axes.vlines(place, min(values), max(values), color="#1d2127", linewidth=1.2)
            axes.plot([place] * len(values), values, "o", color="#1d2127", markersize=4)
        if what == "right":
            axes.axhline(CHANCE, color="#666666", linestyle=":", linewidth=1)
            axes.text(-0.4, CHANCE + 0.015, "guessing among five colours", fontsize=8, color="#666666")
        axes.set(ylim=(0, 1.02), title=title)
        axes.set_xticks(range(len(MODELS)), [NAMES[model].replace(" ", "\n", 1) for model in MODELS], fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _run(commands: Sequence[Sequence[str]]) -> None:
    with ThreadPoolExecutor(N_CORES) as pool:
        list(pool.map(_run_one, commands))


def _run_one(command: Sequence[str]) -> None:
    started = time.monotonic()
    log = Path(command[1]) / f"{'-'.join(Path(part).name for part in command)}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        subprocess.run([sys.executable, "-m", *command], stdout=file, stderr=subprocess.STDOUT, check=True)
    print(f"{' '.join(command)}: {time.monotonic() - started:.0f} s", flush=True)


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
