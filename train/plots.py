"""Plots of a training: one column over its steps, and all columns side by side."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

Steps = Sequence[dict[str, Any]]
_INK, _SOFT = "#2f6f4f", "#999999"
N_ACROSS = 4
MOST_PANELS = 24
_AXES = ("step", "epoch")


def plot(steps: Steps, column: str, *, title: str, epochs: bool = True) -> bytes:
    """One column over the steps as a small PNG; dotted lines where an epoch ends."""
    figure = _figure((5, 2.6))
    axes = figure.subplots()
    _draw(axes, steps, column, epochs=epochs)
    axes.set(xlabel="step", ylabel=column, title=title)
    return _png(figure)


def numbers(steps: Steps) -> list[str]:
    """The columns that hold numbers, in the order in which the steps name them."""
    named = dict.fromkeys(name for step in steps for name in step if name not in _AXES)
    return [name for name in named if any(_number(step.get(name)) for step in steps)]


def panels(steps: Steps, columns: Sequence[str], *, title: str) -> bytes:
    """A small plot for every column (at most ``MOST_PANELS``), four in a row, as one PNG."""
    shown = list(columns)[:MOST_PANELS]
    n_rows = max(1, -(-len(shown) // N_ACROSS))
    n_across = min(N_ACROSS, max(1, len(shown)))
    figure = _figure((2.6 * n_across, 1.7 * n_rows + 0.4))
    grid = figure.subplots(n_rows, n_across, squeeze=False)
    for axes in grid.flat:
        axes.set_visible(False)
    for axes, column in zip(grid.flat, shown, strict=False):
        axes.set_visible(True)
        _draw(axes, steps, column, epochs=False)
        axes.set_title(column, fontsize=8)
        axes.tick_params(labelsize=7)
    figure.suptitle(title, fontsize=9)
    return _png(figure)


def embedded(png: bytes, alt: str) -> str:
    """A PNG as a Markdown image that needs no file."""
    return f"![{alt}](data:image/png;base64,{base64.b64encode(png).decode()})"


def _figure(size: tuple[float, float]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _draw(axes: Any, steps: Steps, column: str, *, epochs: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    shown = [step for step in steps if _number(step.get(column))]
    axes.plot([s["step"] for s in shown], [s[column] for s in shown], color=_INK, marker="o", markersize=2, linewidth=1)
    for before, after in pairwise(shown):
        if epochs and int(before["epoch"] - 1e-6) != int(after["epoch"] - 1e-6):
            axes.axvline(before["step"], color=_SOFT, linestyle=":", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))


def _png(figure: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
