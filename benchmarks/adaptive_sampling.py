"""What GRPO-ATS does to code before anything is learned: the same model, prompts and seeds, with and without it.

    python -m benchmarks.adaptive_sampling data/learning_proof

Takes the learning proof's masked SFT models, and lets GRPO roll out held-out questions twice each, at temperature 1
and with a learning rate of 0: plainly, and with temperature 0 inside code (Thyme §4.3). Counted are programs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.learning_proof import SEEDS
from benchmarks.proof_seed import Course
from train.runs.command_line import guarded

N_ROLLOUTS = 2
"""Per question."""


class Rates(NamedTuple):
    """Of one seed's rollouts at temperature 1: programs that ran among those that were written, and right answers."""

    executable: float
    right: float
    n_programs: float


def measure(course: Course, *, adaptive: bool) -> Rates:
    """The rates of a seed's masked model."""
    history = course.reinforce(
        name=f"sampling-{'adaptive' if adaptive else 'plain'}",
        rows=course.held_out,
        learning_rate=0.0,
        temperature=1.0,
        max_steps=-1,
        epochs=1.0,
        generations=N_ROLLOUTS,
        adaptive_temperature=adaptive,
    )
    steps = history["steps"]
    programs = [step["tool_calls"] * course.scale.grpo_batch for step in steps]
    ran = sum(n * step.get("executable_rate", 0.0) for n, step in zip(programs, steps, strict=True))
    return Rates(ran / sum(programs), fmean(step["accuracy"] for step in steps), sum(programs))


def table(plain: Sequence[Rates], adaptive: Sequence[Rates], seeds: Sequence[int]) -> str:
    """Markdown: a line per seed."""
    lines = [
        "| seed | programs | ran, plain | ran, GRPO-ATS | right, plain | right, GRPO-ATS |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for seed, one, other in zip(seeds, plain, adaptive, strict=True):
        lines.append(
            f"| {seed} | {one.n_programs:.0f}, {other.n_programs:.0f} | {one.executable:.0%} | {other.executable:.0%} "
            f"| {one.right:.0%} | {other.right:.0%} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path, help="folder of the learning proof")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args()
    with guarded():
        courses = [Course(options.root, seed) for seed in options.seeds]
        plain, adaptive = ([measure(course, adaptive=with_ats) for course in courses] for with_ats in (False, True))
    print(table(plain, adaptive, options.seeds))


if __name__ == "__main__":
    main()
