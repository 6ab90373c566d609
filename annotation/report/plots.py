"""Plots as PNG for pages that show pictures only; the same figures give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from annotation.people import PersonQuality
from annotation.quality import Quality
from pipelines.charts import BLUE, GREEN, INK, LINE, ORANGE, SOFT, WIDTH, png


def plots(quality: Quality) -> dict[str, bytes]:
    """``rounds``, ``people`` and ``reasons`` as PNG; a plot that would be empty is left out."""
    drawn = {"rounds": _rounds(quality)}
    if quality.people:
        drawn["people"] = _people(quality)
    if quality.reasons:
        drawn["reasons"] = _reasons(quality)
    return {name: png(figure) for name, figure in drawn.items()}


def _rounds(quality: Quality) -> Figure:
    steps = quality.funnel
    figure, axes = _figure(0.45 * len(steps) + 0.8)
    names, counts = [step.name for step in steps], [step.n for step in steps]
    bars = axes.barh(range(len(steps)), counts, color=[BLUE] * (len(steps) - 1) + [GREEN], height=0.62)
    axes.bar_label(bars, [f" {n:,}" for n in counts], color=INK, fontsize=9)
    waiting = ", ".join(f"{n} in {name.replace('_', '-')}" for name, n in quality.waiting.items() if n) or "none"
    _name_rows(axes, names)
    axes.set_title(f"Waiting: {waiting}; rejected: {quality.n_rejected}", fontsize=9, color=SOFT, loc="left")
    axes.set_xlim(0, max(1, *counts) * 1.1)
    return figure


def _people(quality: Quality) -> Figure:
    """Left how fast, right how much of it stood: together, because neither says much alone."""
    rows = quality.people
    figure = Figure(figsize=(WIDTH, 0.27 * len(rows) + 0.9), dpi=100, layout="constrained")
    fast, good = figure.subplots(1, 2, sharey=True)
    names = [row.name for row in rows]
    _name_rows(fast, names)
    fast.barh(range(len(rows)), [row.per_hour or 0 for row in rows], color=[_colour(row) for row in rows], height=0.62)
    fast.set_title("submissions per active hour (orange: experts)", fontsize=9, color=INK, loc="left")
    for place, row in enumerate(rows):
        if row.first_pass.value is not None:
            low, high = row.first_pass.interval
            good.plot([100 * low, 100 * high], [place, place], color=SOFT, linewidth=1.2)
            good.plot([100 * row.first_pass.value], [place], "o", color=GREEN, markersize=5)
    if quality.first_pass.value is not None:
        good.axvline(100 * quality.first_pass.value, color=INK, linewidth=0.8, linestyle=":")
    good.set_title("accepted as first written, % (95 % interval)", fontsize=9, color=INK, loc="left")
    good.set_xlim(0, 102)
    for axes in (fast, good):
        _styled(axes)
    return figure


def _colour(row: PersonQuality) -> str:
    return ORANGE if row.role == "expert" else BLUE


def _reasons(quality: Quality) -> Figure:
    names = [reason.replace("_", " ") for reason in quality.reasons]
    figure, axes = _figure(0.32 * len(names) + 0.9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    checks = [counts["cross_check"] for counts in quality.reasons.values()]
    _name_rows(axes, names)
    axes.barh(range(len(names)), checks, color=BLUE, height=0.62, label="in cross-check")
    experts = [counts["accept"] for counts in quality.reasons.values()]
    bars = axes.barh(range(len(names)), experts, left=checks, color=ORANGE, height=0.62, label="in acceptance")
    axes.bar_label(bars, [f" {a + b}" for a, b in zip(checks, experts, strict=True)], color=INK, fontsize=9)
    axes.margins(x=0.1)
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    return figure


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), dpi=100, layout="constrained")
    axes = figure.subplots()
    _styled(axes)
    return figure, axes


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """By place: two people may have one name, and a name with a dollar sign is no formula."""
    axes.set_yticks(range(len(names)), labels=names, parse_math=False)


def _styled(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=LINE)
    axes.tick_params(labelsize=9, colors=INK, length=0)
    axes.spines[:].set_visible(False)
    if not axes.yaxis_inverted():
        axes.invert_yaxis()
