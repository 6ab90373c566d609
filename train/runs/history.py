"""The record of a training, ``training.json``: its steps, inputs and code version, and the plots of its steps.

{"program": "sft", "inputs": {"digest": "…", "dataset": {…}, "model": {…}, "arguments": {…}},
 "recipe": {"name": "thyme", "digest": "…"}, "code": {"commit": "1a2b…", "dirty": false, "unknown": ""},
 "steps": [{"step": 1, "epoch": 0.17, "loss": 6.31, …}], "n_steps": 12, "seconds": 9.8, "versions": {…}}

``inputs.digest`` is the checkpoint's data version in Dagster; the recipe's digest covers every argument.
"""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from PIL import Image, ImageDraw

from darkroom.pipelines.inspection.charts import mark_integers, new_axes, new_figure, png
from darkroom.pipelines.inspection.pages import data_url, markdown_table
from darkroom.pipelines.storage.media_validation import encode
from darkroom.train.runs.reporting import is_number

PANELS = "metrics.png"
"""The plot of all columns, beside ``training.json``."""
N_ACROSS = 4
MOST_PANELS = 32
Steps = Sequence[dict[str, Any]]
_ROOT = Path(__file__).resolve().parents[2]
_INK = "#2f6f4f"
_SOFT = "#999999"
_N_MARKED = 50
_AXES = ("step", "epoch")
_MOST_ROWS = 30
_TINY = (240, 56)
_METHOD_PREFIXES = ("parts/", "groups/")
"""Prefixes of the metrics that a method of reinforcement learning adds."""
COLUMNS: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("columns.yaml").read_text())
"""Columns of a trainer's log, by program; ``plotted`` have an entry of their own on the asset's page."""


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """The checked-out commit; without one, ``unknown`` gives the reason."""

    commit: str | None
    dirty: bool | None = None
    """True if the checkout has changed or untracked files: then the commit alone does not identify the code."""
    unknown: str = ""

    @property
    def in_words(self) -> str:
        """The version in words: ``1a2b3c4d5e6f, with uncommitted changes``."""
        if self.commit is None:
            return f"unknown: {self.unknown}"
        return self.commit[:12] + (", with uncommitted changes" if self.dirty else "")


def code_version(root: Path = _ROOT) -> CodeVersion:
    """Read the git commit of the checkout at ``root``. Code that is installed elsewhere belongs to no commit."""
    try:
        if Path(_git(root, "rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return CodeVersion(None, unknown=f"{root} is no git checkout of its own")
        return CodeVersion(_git(root, "rev-parse", "HEAD"), bool(_git(root, "status", "--porcelain")))
    except FileNotFoundError:
        return CodeVersion(None, unknown="git is not installed")
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        return CodeVersion(None, unknown=lines[0] if lines else f"git exited with {error.returncode}")


def _git(root: Path, *arguments: str) -> str:
    # no lock is taken: several trainings may read the same checkout at once
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def read_steps(log: Steps, program: str) -> list[dict[str, Any]]:
    """Select a log's training steps: step, epoch, the columns that ``program`` keeps, the evaluation after it."""
    of_method = sorted({name for entry in log for name in entry if name.startswith(_METHOD_PREFIXES)})
    names = (*_AXES, *COLUMNS[program]["told"], *of_method, *COLUMNS[program]["kept"])
    evaluated = {entry["step"]: entry for entry in log if any(name.startswith("eval_") for name in entry)}
    steps = [{**evaluated.get(entry.get("step"), {}), **entry} for entry in log if "loss" in entry]
    return [{name: step[name] for name in names if name in step} for step in steps]


def step_table(steps: Steps) -> str:
    """Render the steps as a Markdown table; of many steps, some evenly spaced ones."""
    rows = [*steps[:-1][:: max(1, -(-len(steps) // _MOST_ROWS))], *steps[-1:]]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return markdown_table(columns, [[_cell(row.get(name)) for name in columns] for row in rows])


def embedded(image: bytes, alt: str) -> str:
    return f"![{alt}]({data_url(image)})"


def number_columns(steps: Steps) -> list[str]:
    names = dict.fromkeys(name for step in steps for name in step if name not in _AXES)
    return [name for name in names if any(is_number(step.get(name)) for step in steps)]


def column_plot(steps: Steps, column: str, *, title: str) -> bytes:
    """Plot one column over the steps as a small PNG; dotted lines where an epoch ends."""
    figure, axes = new_axes(2.6, width=5)
    _draw(axes, steps, column, epochs=True)
    axes.set(xlabel="step", ylabel=column)
    axes.set_title(title, y=1.0)  # a computed position takes a fifth of the time
    return png(figure)


def panel_plot(steps: Steps, columns: Sequence[str], *, title: str) -> bytes:
    """Plot every column (at most ``MOST_PANELS``), four in a row, as one PNG of few colours."""
    plotted = list(columns)[:MOST_PANELS]
    n_rows, n_across = max(1, -(-len(plotted) // N_ACROSS)), min(N_ACROSS, max(1, len(plotted)))
    height = 1.6 * n_rows + 0.4
    figure = new_figure(height, width=2.5 * n_across, dpi=80, layout=None)
    for number, column in enumerate(plotted, 1):
        axes = figure.add_subplot(n_rows, n_across, number)
        _draw(axes, steps, column, epochs=False)
        axes.set_title(column, fontsize=8, y=1.0)
        axes.tick_params(labelsize=6)
    figure.subplots_adjust(0.06, 0.3 / height, 0.98, 1 - 0.6 / height, wspace=0.35, hspace=0.55)
    figure.suptitle(title, fontsize=9)
    with Image.open(BytesIO(png(figure))) as image:
        return encode(image.convert("RGB").quantize(16), "PNG", optimize=True)


def tiny_plot(steps: Steps, column: str) -> bytes:
    """Plot one column as a black line on white, a PNG of some 400 bytes that an asset page can hold inline."""
    values = [float(step[column]) for step in steps if is_number(step.get(column))]
    width, height = _TINY
    image = Image.new("1", _TINY, 1)
    if values:
        low, span = min(values), (max(values) - min(values)) or 1.0
        x_scale, y_scale = (width - 5) / max(1, len(values) - 1), (height - 5) / span
        points = [(2 + n * x_scale, height - 3 - (value - low) * y_scale) for n, value in enumerate(values)]
        draw = ImageDraw.Draw(image)
        draw.line(points, fill=0, width=2)
        draw.ellipse([points[-1][0] - 2, points[-1][1] - 2, points[-1][0] + 2, points[-1][1] + 2], fill=0)
    return encode(image, "PNG", optimize=True)


def _draw(axes: Any, steps: Steps, column: str, *, epochs: bool) -> None:
    plotted = [step for step in steps if is_number(step.get(column))]
    xs, ys = [step["step"] for step in plotted], [step[column] for step in plotted]
    axes.plot(xs, ys, color=_INK, marker="o" if len(plotted) < _N_MARKED else "", markersize=2, linewidth=1)
    for before, after in pairwise(plotted):
        if epochs and int(before["epoch"] - 1e-6) != int(after["epoch"] - 1e-6):
            axes.axvline(before["step"], color=_SOFT, linestyle=":", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    mark_integers(axes.xaxis, n_ticks=4)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
