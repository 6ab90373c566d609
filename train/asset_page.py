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


def metadata(made: Mapping[str, Any], output: Path, *, column: str, figure: bytes) -> dict[str, Any]:
    """Of a ``training.json``: how the column went, every step, all plots, rollouts, and where it came from."""
    steps = made["steps"]
    return {
        **_finals(steps, column),
        column: _value(history.sparkline(_values(steps, column)), "text"),
        "steps_table": _value(history.step_table(steps), "md"),
        "plot": _value(plots.embedded(figure, column), "md"),
        **_panels(output),
        **_rollouts(output),
        "steps": _value(made["n_steps"], "int"),
        "seconds": _value(made["seconds"], "float"),
        "checkpoint": _value(str(output.resolve()), "path"),
        **_origin(made),
    }


def _finals(steps: Sequence[Mapping[str, Any]], column: str) -> dict[str, Any]:
    """The last number of every column: Dagster plots them from one materialisation to the next."""
    last = {name: _values(steps, name)[-1] for name in plots.numbers(steps)}
    finals = {f"final_{name}": _value(float(value), "float") for name, value in last.items()}
    return finals or {f"final_{column}": _value(None, "float")}


def _panels(output: Path) -> dict[str, Any]:
    path = output / history.PANELS
    return {"plots": _value(plots.embedded(path.read_bytes(), "all columns"), "md")} if path.is_file() else {}


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
    return [step[column] for step in steps if step.get(column) is not None]


def _value(raw: Any, kind: str) -> dict[str, Any]:
    return {"raw_value": raw, "type": kind if raw is not None else "null"}
