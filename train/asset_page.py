"""What the page of a checkpoint's asset shows, as the metadata of its materialisation.

Numbers are plotted by Dagster over all materialisations; pictures are Markdown with data URLs, since the UI serves no
files. Markdown of a thousand characters and more is shown behind a link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from train import gallery, history, plots
from train.provenance import Code

TOLD = (
    "reward",
    "accuracy",
    "executable_rate",
    "tool_calls",
    "broken_rate",
    "loss",
    "mean_token_accuracy",
    "entropy",
    "sandbox/waiting_share",
)
"""Columns that the page shows one by one, where a training has them; ``plots`` shows all."""


def metadata(made: Mapping[str, Any], output: Path, *, column: str, figure: bytes) -> dict[str, Any]:
    """Of a ``training.json``: how its columns went, every step, all plots, rollouts, and where it came from."""
    steps = made["steps"]
    there = plots.numbers(steps)
    told = [column, *(name for name in TOLD if name in there and name != column)]
    return {
        **{f"final_{name}": _value(_last(steps, name), "float") for name in told},
        **{f"{name}_course": _value(_course(steps, name), "md") for name in told},
        "plot": _value(history.embedded(figure, column), "md"),
        **_panels(output),
        "steps_table": _value(history.step_table(steps), "md"),
        **_rollouts(output),
        "steps": _value(made["n_steps"], "int"),
        "seconds": _value(made["seconds"], "float"),
        "checkpoint": _value(str(output.resolve()), "path"),
        **_origin(made),
    }


def _last(steps: Sequence[Mapping[str, Any]], column: str) -> float | None:
    """Dagster plots it from one materialisation to the next."""
    values = _values(steps, column)
    return float(values[-1]) if values else None


def _course(steps: Sequence[dict[str, Any]], column: str) -> str:
    """A plot of a few hundred bytes and a line, short enough to be shown on the page itself."""
    values = _values(steps, column)
    if not values:
        return "no step had it"
    said = f"{values[0]:.4g} → {values[-1]:.4g} (from {min(values):.4g} to {max(values):.4g})"
    return f"{history.embedded(plots.small(steps, column), column)}\n\n{said}"


def _panels(output: Path) -> dict[str, Any]:
    path = output / history.PANELS
    return {"plots": _value(history.embedded(path.read_bytes(), "all columns"), "md")} if path.is_file() else {}


def _rollouts(output: Path) -> dict[str, Any]:
    shown = gallery.read_rollouts(output)
    if not shown:
        return {}
    examples = gallery.examples(shown, output)
    return {
        **{f"rollout_{n}": _value(line, "md") for n, line in enumerate(examples, 1)},
        "rollouts": _value(gallery.table(shown, output), "md"),
        "rollouts_page": _value(str((output / gallery.PAGE).resolve()), "path"),
    }


def _origin(made: Mapping[str, Any]) -> dict[str, Any]:
    """Recipe, code and inputs; a checkpoint from before they were recorded says nothing of them."""
    found = {"inputs": _value(made["inputs"]["digest"], "text")}
    if "recipe" in made:
        found["recipe"] = _value(made["recipe"]["name"], "text")
        found["recipe_digest"] = _value(made["recipe"]["digest"], "text")
    if "code" in made:
        found["git_commit"] = _value(Code(**made["code"]).in_words, "text")
    return found


def _values(steps: Sequence[Mapping[str, Any]], column: str) -> list[float]:
    return [step[column] for step in steps if plots.is_number(step.get(column))]


def _value(raw: Any, kind: str) -> dict[str, Any]:
    return {"raw_value": raw, "type": kind if raw is not None else "null"}
