"""The report of an evaluation: Markdown tables, by the templates in ``templates/``, and charts as PNG."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from darkroom.pipelines.inspection.charts import BLUE, GREEN, INK, LINE, ORANGE, mix, new_axes, new_figure, png, styled
from darkroom.pipelines.inspection.pages import markdown_table
from darkroom.pipelines.publishing.rendering import templates

_EDGE = re.compile(r"(?<!\\)\|")


def report(record: Mapping[str, Any]) -> str:
    return _templates().get_template("report.md.jinja").render(record) + "\n"


def accuracy_table(results: Mapping[str, Any]) -> str:
    return _templates().get_template("accuracy.md.jinja").render(results=results).rstrip("\n")


@cache
def _templates() -> jinja2.Environment:
    environment = templates(Path(__file__).with_name("templates"))  # Markdown, which the page renders without HTML
    environment.filters |= {"cell": _cell, "percent": "{:.1%}".format, "table": _table}
    return environment


def _table(lines: str) -> str:
    """Rows of cells as a table with a line below its head; columns that are empty in every row are omitted."""
    head, *rows = ([cell.strip() for cell in _EDGE.split(line)[1:-1]] for line in lines.strip().splitlines())
    columns = [column for column in range(len(head)) if not column or any(row[column] for row in rows)]
    kept = ([row[column] for column in columns] for row in (head, *rows))
    return markdown_table(next(kept), kept) + "\n"


def _cell(text: str) -> str:
    return " ".join(str(text).replace("|", "\\|").replace("`", "'").split())


Results = Mapping[str, Any]


def charts(results: Results) -> dict[str, bytes]:
    sections = results["benchmarks"]
    pngs = {"accuracy.png": accuracy(sections), "tool_calls.png": tool_calls(sections), "tools.png": tools(sections)}
    if faithful := {name: section["faithfulness"] for name, section in sections.items() if section["faithfulness"]}:
        pngs["faithfulness.png"] = faithfulness(faithful)
    if results["all"]["controls"]:
        pngs["controls.png"] = controls(results["all"]["controls"])
    return pngs


def accuracy(sections: Results) -> bytes:
    names, estimates = list(sections), [section["accuracy"]["right"] for section in sections.values()]
    figure, axes = new_axes(0.42 * len(names) + 0.9)
    means = [estimate["mean"] for estimate in estimates]
    ends = [[abs(estimate[end] - estimate["mean"]) for estimate in estimates] for end in ("low", "high")]
    axes.barh(names, means, color=BLUE, height=0.6, xerr=ends, error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 3})
    for y, estimate in enumerate(estimates):
        axes.text(estimate["high"] + 0.015, y, f"{estimate['mean']:.1%}", va="center", fontsize=9, color=INK)
    axes.set_xlim(0, 1.15)
    axes.invert_yaxis()
    return _done(figure, axes, title="Right answers, with 95 % intervals", grid="x")


def tool_calls(sections: Results) -> bytes:
    """Rollouts by number of calls, right and wrong, by benchmark (as CodeV's figure 8)."""
    n = max(1, len(sections))
    figure = new_figure(2.6 * -(-n // 3))
    panels = figure.subplots(-(-n // 3), min(n, 3), squeeze=False).flatten()
    for axes, (name, section) in zip(panels, sections.items(), strict=False):
        _buckets(axes, section["tool_calls"])
        _style(axes, title=name, grid="y")
    for axes in panels[len(sections) :]:
        axes.set_visible(False)
    title = "Rollouts by number of tool calls: right (green), wrong (orange)"
    figure.suptitle(title, fontsize=10, color=INK, x=0.01, ha="left")
    return png(figure)


def tools(sections: Results) -> bytes:
    groups = {name: section["tools"] or {"no code": 0} for name, section in sections.items()}
    return mix(groups, title="Code rounds by tool; a round may be of several kinds")


def faithfulness(sections: Results) -> bytes:
    """Proportions of faithful, unfaithful and image-less rollouts; whole images count as none."""
    by_both = [(name, who, shares) for name, counts in sections.items() for who, shares in counts.items()]
    bars = {f"{name}, by {who}": shares["parts_only"] for name, who, shares in by_both}
    figure, axes = new_axes(0.46 * len(bars) + 1.1)
    start = [0.0] * len(bars)
    kinds = {"faithful": "shows the target", "unfaithful": "does not", "no_picture": "no image"}
    for (kind, label), colour in zip(kinds.items(), (GREEN, ORANGE, LINE), strict=True):
        widths = [shares[kind] for shares in bars.values()]
        patches = axes.barh(list(bars), widths, left=start, color=colour, height=0.6, label=label)
        axes.bar_label(patches, [f"{w:.0%}" if w >= 0.06 else "" for w in widths], label_type="center", fontsize=9)
        start = [offset + width for offset, width in zip(start, widths, strict=True)]
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    return _done(figure, axes, title="Does any crop show the target? Parts of the image only", grid="x")


def controls(effects: Results) -> bytes:
    """The proportion of answers that change when the images do, of rollouts that were right and wrong."""
    figure, axes = new_axes(2.7)
    kinds = (("changed_right", -0.2, GREEN, "was right"), ("changed_wrong", 0.2, ORANGE, "was wrong"))
    for kind, shift, colour, label in kinds:
        changed = [effect[kind] for effect in effects.values()]
        xs, heights = [x + shift for x in range(len(effects))], [estimate["mean"] for estimate in changed]
        bars = axes.bar(xs, heights, width=0.38, color=colour, label=label)
        shares = [f"{estimate['mean']:.0%} of {estimate['n']}" if estimate["n"] else "" for estimate in changed]
        axes.bar_label(bars, shares, fontsize=8)
    axes.set_xticks(range(len(effects)), labels=[name.replace("_", " ") for name in effects])
    axes.set_ylim(0, 1.12)
    axes.legend(fontsize=8, frameon=False)
    return _done(figure, axes, title="Answers that change when the images are replaced", grid="y")


def _buckets(axes: Axes, buckets: Sequence[Mapping[str, Any]]) -> None:
    names = [bucket["name"] for bucket in buckets]
    right = [bucket["share"] * bucket["accuracy"] for bucket in buckets]
    wrong = [bucket["share"] * (1 - bucket["accuracy"]) for bucket in buckets]
    inside = axes.bar(names, right, color=GREEN, width=0.7)
    above = axes.bar(names, wrong, bottom=right, color=ORANGE, width=0.7)
    shares = [f"{share:.0%}" if share >= 0.08 else "" for share in right]
    axes.bar_label(inside, shares, label_type="center", fontsize=8)
    totals = [f"{bucket['share']:.0%}" if bucket["n"] else "" for bucket in buckets]
    axes.bar_label(above, totals, fontsize=8, color=INK)
    axes.set_ylim(0, 1.12)


def _done(figure: Figure, axes: Axes, *, title: str, grid: str) -> bytes:
    _style(axes, title=title, grid=grid)
    return png(figure)


def _style(axes: Axes, *, title: str, grid: str) -> None:
    styled(axes, grid=grid)
    axes.set_title(title, fontsize=10, color=INK, loc="left", parse_math=False)
    (axes.xaxis if grid == "x" else axes.yaxis).set_major_formatter(PercentFormatter(1))
