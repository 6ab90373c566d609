"""An evaluation's charts as PNG, in the house's colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from pipelines.charts import BLUE, GREEN, INK, LINE, ORANGE, SOFT, WIDTH, mix, png

Results = Mapping[str, Any]


def charts(results: Results) -> dict[str, bytes]:
    """Every chart that there are figures for, by file name."""
    sections = results["benchmarks"]
    made = {
        "accuracy.png": accuracy(sections),
        "tool_calls.png": tool_calls(sections),
        "tools.png": tools(sections),
    }
    if faithful := {name: found["faithfulness"] for name, found in sections.items() if found["faithfulness"]}:
        made["faithfulness.png"] = faithfulness(faithful)
    if results["all"]["controls"]:
        made["controls.png"] = controls(results["all"]["controls"])
    return made


def accuracy(sections: Results) -> bytes:
    """Accuracy of every benchmark with its 95 % interval."""
    names, found = list(sections), [section["accuracy"]["right"] for section in sections.values()]
    figure, axes = _axes(0.42 * len(names) + 0.9)
    means = [one["mean"] for one in found]
    ends = [[one["mean"] - one["low"] for one in found], [one["high"] - one["mean"] for one in found]]
    axes.barh(names, means, color=BLUE, height=0.6, xerr=ends, error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 3})
    for place, one in enumerate(found):
        axes.text(one["high"] + 0.015, place, f"{one['mean']:.1%}", va="center", fontsize=9, color=INK)
    axes.set_xlim(0, 1.15)
    axes.invert_yaxis()
    return _done(figure, axes, title="Right answers, with 95 % intervals", grid="x")


def tool_calls(sections: Results) -> bytes:
    """How many rollouts make how many calls and how many of them are right, by benchmark (as CodeV's figure 8)."""
    n = max(1, len(sections))
    figure = Figure(figsize=(WIDTH, 2.6 * -(-n // 3)), dpi=100, layout="constrained")
    panels = figure.subplots(-(-n // 3), min(n, 3), squeeze=False).flatten()
    for axes, (name, section) in zip(panels, sections.items(), strict=False):
        _buckets(axes, section["tool_calls"])
        _style(axes, title=name, grid="y")
    for axes in panels[len(sections) :]:
        axes.set_visible(False)
    figure.suptitle(
        "Rollouts by number of tool calls: right (green), wrong (orange)", fontsize=10, color=INK, x=0.01, ha="left"
    )
    return png(figure)


def tools(sections: Results) -> bytes:
    """Programs by what they do, a block per benchmark."""
    groups = {name: section["tools"] or {"no program": 0} for name, section in sections.items()}
    return mix(groups, title="Programs by tool; a program may be of several kinds")


def faithfulness(found: Results) -> bytes:
    """Shares of faithful, unfaithful and picture-less rollouts; whole pictures count as none."""
    bars = {f"{name}, by {who}": one["parts_only"] for name, told in found.items() for who, one in told.items()}
    figure, axes = _axes(0.46 * len(bars) + 1.1)
    start = [0.0] * len(bars)
    kinds = (
        ("faithful", GREEN, "shows the target"),
        ("unfaithful", ORANGE, "does not"),
        ("no_picture", LINE, "no picture"),
    )
    for kind, colour, label in kinds:
        widths = [one[kind] for one in bars.values()]
        drawn = axes.barh(list(bars), widths, left=start, color=colour, height=0.6, label=label)
        axes.bar_label(drawn, [f"{w:.0%}" if w >= 0.06 else "" for w in widths], label_type="center", fontsize=9)
        start = [left + width for left, width in zip(start, widths, strict=True)]
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    return _done(figure, axes, title="Does any crop show the target? Parts of the picture only", grid="x")


def controls(found: Results) -> bytes:
    """How often the answer changes when the pictures do, of rollouts that were right and wrong."""
    figure, axes = _axes(2.7)
    for shift, (kind, colour, label) in zip(
        (-0.2, 0.2), (("changed_right", GREEN, "was right"), ("changed_wrong", ORANGE, "was wrong")), strict=True
    ):
        places = [place + shift for place in range(len(found))]
        bars = axes.bar(places, [one[kind]["mean"] for one in found.values()], width=0.38, color=colour, label=label)
        shares = [f"{one[kind]['mean']:.0%} of {one[kind]['n']}" if one[kind]["n"] else "" for one in found.values()]
        axes.bar_label(bars, shares, fontsize=8)
    axes.set_xticks(range(len(found)), labels=[name.replace("_", " ") for name in found])
    axes.set_ylim(0, 1.12)
    axes.legend(fontsize=8, frameon=False)
    return _done(figure, axes, title="Answers that change when the pictures are not what they were", grid="y")


def _buckets(axes: Axes, buckets: Sequence[Mapping[str, Any]]) -> None:
    names = [bucket["name"] for bucket in buckets]
    right = [bucket["share"] * bucket["accuracy"] for bucket in buckets]
    wrong = [bucket["share"] * (1 - bucket["accuracy"]) for bucket in buckets]
    inside = axes.bar(names, right, color=GREEN, width=0.7)
    above = axes.bar(names, wrong, bottom=right, color=ORANGE, width=0.7)
    axes.bar_label(
        inside, [f"{share:.0%}" if share >= 0.08 else "" for share in right], label_type="center", fontsize=8
    )
    axes.bar_label(
        above, [f"{bucket['share']:.0%}" if bucket["n"] else "" for bucket in buckets], fontsize=8, color=INK
    )
    axes.set_ylim(0, 1.12)


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), dpi=100, layout="constrained")
    return figure, figure.subplots()


def _done(figure: Figure, axes: Axes, *, title: str, grid: str) -> bytes:
    _style(axes, title=title, grid=grid)
    return png(figure)


def _style(axes: Axes, *, title: str, grid: str) -> None:
    axes.set_title(title, fontsize=10, color=INK, loc="left", parse_math=False)
    axes.set_axisbelow(True)
    (axes.xaxis if grid == "x" else axes.yaxis).set_major_formatter(PercentFormatter(1))
    axes.grid(axis="x" if grid == "x" else "y", color=LINE)
    axes.tick_params(labelsize=8, colors=SOFT, length=0)
    axes.spines[:].set_visible(False)
