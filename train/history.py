"""The history of a training: one record per step, and where it came from, as ``training.json``.

{"program": "sft", "inputs": {"digest": "…", "dataset": {…}, "model": {…}, "arguments": {…}},
 "recipe": {"name": "thyme", "digest": "…"}, "code": {"commit": "1a2b…", "dirty": false, "unknown": ""},
 "steps": [{"step": 1, "epoch": 0.17, "loss": 6.31, …}], "n_steps": 12, "seconds": 9.8, "versions": {…}}

``inputs.digest`` is the checkpoint's data version in Dagster; the recipe's digest covers every argument.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "transformers", "trl", "datasets", "peft", "accelerate")
PANELS = "metrics.png"
"""The plot of all columns, beside ``training.json``."""
Steps = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class History:
    """What happened in one training."""

    program: str
    inputs: dict[str, Any]
    steps: list[dict[str, Any]]
    n_steps: int
    seconds: float
    versions: dict[str, str]
    recipe: dict[str, str]
    code: dict[str, Any]

    def write(self, path: Path) -> None:
        """As indented JSON."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")


def read_steps(log: Steps, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The training steps of a trainer's log: step, epoch and those of ``columns`` that were logged."""
    names = ("step", "epoch", *columns)
    return [{name: entry[name] for name in names if name in entry} for entry in log if "loss" in entry]


def versions() -> dict[str, str]:
    """Versions of what trained."""
    return {name: version(name) for name in PACKAGES}


def sparkline(values: Sequence[float]) -> str:
    """``▇▅▃▂▁``: the course of a column in one word."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join("▁▂▃▄▅▆▇█"[round(7 * (value - low) / span)] for value in values)


def step_table(steps: Steps, *, most: int = 30) -> str:
    """The steps as a Markdown table; of many steps, ``most`` evenly spaced ones."""
    stride = max(1, -(-len(steps) // most))
    kept = [*steps[:-1][::stride], *steps[-1:]]
    columns = list(dict.fromkeys(name for step in kept for name in step))
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(_cell(step.get(name)) for name in columns) + " |" for step in kept]
    return "\n".join(lines)


def embedded(png: bytes, alt: str) -> str:
    """A PNG as a Markdown image that needs no file."""
    return f"![{alt}](data:image/png;base64,{base64.b64encode(png).decode()})"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
