"""Plots of a training: one column over its steps, all columns side by side, and very small ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any, Literal

Steps = Sequence[dict[str, Any]]
_INK, _SOFT = "#2f6f4f", "#999999"
N_ACROSS = 4
MOST_PANELS = 32
_N_MARKED = 50
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
    return [name for name in named if any(is_number(step.get(name)) for step in steps)]


def panels(steps: Steps, columns: Sequence[str], *, title: str) -> bytes:
    """A small plot for every column (at most ``MOST_PANELS``), four in a row, as one PNG of few colours."""
    shown = list(columns)[:MOST_PANELS]
    n_rows, n_across = max(1, -(-len(shown) // N_ACROSS)), min(N_ACROSS, max(1, len(shown)))
    figure = _figure((2.5 * n_across, 1.6 * n_rows + 0.4), layout=None, dpi=80)
    for number, column in enumerate(shown, 1):
        axes = figure.add_subplot(n_rows, n_across, number)
        _draw(axes, steps, column, epochs=False)
        axes.set_title(column, fontsize=8)
        axes.tick_params(labelsize=6)
    height = 1.6 * n_rows + 0.4
    figure.subplots_adjust(0.06, 0.3 / height, 0.98, 1 - 0.6 / height, wspace=0.35, hspace=0.55)
    figure.suptitle(title, fontsize=9)
    return _few_colours(_png(figure))


def small(steps: Steps, column: str, *, size: tuple[int, int] = (240, 56)) -> bytes:
    """One column as a black line on white, in some 400 bytes: Markdown with it is short enough to be shown at once."""
    from PIL import Image, ImageDraw

    values = [float(step[column]) for step in steps if is_number(step.get(column))]
    width, height = size
    image = Image.new("1", size, 1)
    if values:
        low, span = min(values), (max(values) - min(values)) or 1.0
        x_scale, y_scale = (width - 5) / max(1, len(values) - 1), (height - 5) / span
        points = [(2 + n * x_scale, height - 3 - (value - low) * y_scale) for n, value in enumerate(values)]
        draw = ImageDraw.Draw(image)
        draw.line(points, fill=0, width=2)
        draw.ellipse([points[-1][0] - 2, points[-1][1] - 2, points[-1][0] + 2, points[-1][1] + 2], fill=0)
    buffer = BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _figure(size: tuple[float, float], *, layout: Literal["constrained"] | None = "constrained", dpi: int = 100) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=dpi, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def _draw(axes: Any, steps: Steps, column: str, *, epochs: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    shown = [step for step in steps if is_number(step.get(column))]
    marker = "o" if len(shown) < _N_MARKED else ""
    xs, ys = [s["step"] for s in shown], [s[column] for s in shown]
    axes.plot(xs, ys, color=_INK, marker=marker, markersize=2, linewidth=1)
    for before, after in pairwise(shown):
        if epochs and int(before["epoch"] - 1e-6) != int(after["epoch"] - 1e-6):
            axes.axvline(before["step"], color=_SOFT, linestyle=":", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))


def _few_colours(png: bytes) -> bytes:
    from PIL import Image

    buffer = BytesIO()
    with Image.open(BytesIO(png)) as image:
        image.convert("RGB").quantize(16).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _png(figure: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def is_number(value: Any) -> bool:
    """Whether it can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
