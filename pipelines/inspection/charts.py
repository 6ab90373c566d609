"""Charts as PNG in the house's colours; equal figures, equal bytes. ``matplotlib`` is imported late: it takes long."""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK, SOFT, LINE, BLUE, ORANGE, GREEN = "#1d2127", "#667080", "#e2e6eb", "#3b6fb6", "#d9822b", "#2f8f5b"
WIDTH = 7.2
"""Inches, of 100 pixels."""


def histogram(counts: Mapping[int, int], *, top: int, title: str, marked: Sequence[int] = (), note: str = "") -> bytes:
    """Rows by a count from 0 to ``top``; the bars of ``marked`` are those that something happens to."""
    figure, axes = new_axes(2.8)
    places = range(top + 1)
    heights = [counts.get(place, 0) for place in places]
    bars = axes.bar(places, heights, color=[ORANGE if place in marked else BLUE for place in places], width=0.72)
    axes.bar_label(bars, [f"{n:,}" if n else "" for n in heights], color=INK, fontsize=9)
    axes.set_xticks(list(places))
    mark_integers(axes.yaxis, n_ticks=4)
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.set_xlabel(note, fontsize=9, color=SOFT, loc="left")
    axes.margins(y=0.12)
    styled(axes, grid="y")
    return png(figure)


def mix(groups: Mapping[str, Mapping[str, int]], *, title: str) -> bytes:
    """Rows by several properties, a block of bars for each: category, difficulty, source."""
    n_bars = sum(map(len, groups.values()))
    figure, axes = new_axes(0.26 * (n_bars + 1.4 * len(groups)) + 0.7)
    place = 0.0
    ticks: dict[float, str] = {}
    for (group, counts), colour in zip(groups.items(), itertools.cycle((BLUE, GREEN, ORANGE, SOFT))):
        axes.text(0, place, group, color=SOFT, fontsize=9, va="center")
        places = [place + 0.9 + number for number in range(len(counts))]
        bars = axes.barh(places, list(counts.values()), color=colour, height=0.66)
        axes.bar_label(bars, [f" {n:,}" for n in counts.values()], color=INK, fontsize=9)
        ticks |= dict(zip(places, counts, strict=True))
        place += len(counts) + 1.4
    axes.set_yticks(list(ticks), labels=list(ticks.values()), parse_math=False)
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.margins(x=0.1)
    axes.set_xlim(0, max(1, axes.get_xlim()[1]))  # of zeros alone, matplotlib centres 0
    mark_integers(axes.xaxis)
    axes.set_ylim(place - 0.8, -0.7)
    styled(axes)
    return png(figure)


def new_figure(
    height: float, *, width: float = WIDTH, dpi: int = 100, layout: Literal["constrained"] | None = "constrained"
) -> Figure:
    """An empty figure; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=dpi, layout=layout)


def new_axes(height: float, *, width: float = WIDTH) -> tuple[Figure, Axes]:
    figure = new_figure(height, width=width)
    return figure, figure.subplots()


def mark_integers(axis: Axis, *, n_ticks: int | None = None) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, **({} if n_ticks is None else {"nbins": n_ticks})))


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def styled(axes: Axes, *, grid: str = "x") -> None:
    """The house's look: no frame, lines across the axis ``grid``."""
    axes.set_axisbelow(True)
    axes.grid(axis="x" if grid == "x" else "y", color=LINE)
    axes.tick_params(labelsize=9, colors=INK, length=0)
    axes.spines[:].set_visible(False)
