"""Tables and figures of experiments, and the pages ``docs/reproductions.md`` and one for each paper."""

import math
from pathlib import Path
from statistics import fmean

from darkroom.pipelines.inspection.charts import new_figure
from darkroom.pipelines.inspection.pages import markdown_table
from measurements.ablations.experiment import MEASURES, Comparison, Experiment
from measurements.ablations.results import Figures
from measurements.ablations.statistics import Paired, paired

PAGE = "reproductions.md"
PAPERS = {
    "Learning proof": "proof",
    "Thyme": "thyme",
    "PyVision-RL": "pyvision",
    "CodeV": "codev",
    "Look Less, Reason More": "look_less",
    "FIGR": "figr",
}
"""Names of the papers' pages: ``reproductions_thyme.md``, …"""
COMMAND = "python -m measurements.ablations"
COLOURS = ("#999999", "#c2703d", "#4c78a8", "#2f6f4f")
_INTRODUCTION = f"""# The papers' ablations in miniature

Do the papers' effects show in a model of a quarter of a million weights? `{COMMAND} NAME data/ablations` trains
and evaluates every arm of an experiment; `{COMMAND} --docs docs data/ablations` writes these pages. The model, its
questions and its training are described in [learning proof](learning_proof.md).

The seed is the unit: arms are compared within a seed, the interval is Student's 95 % interval of the mean difference
over seeds, and the sign test (p) counts seeds. *Shown*: the whole interval lies on the side that the paper says.
Nothing was tuned on the seeds; 101 and 102 had been run once, with SFT alone. With three seeds only large effects can
be shown, and the sign test cannot be below 0.25. A miniature that shows nothing says nothing against a paper.
"""
_END = "\n## \n"
_SUMMARY = """| experiment | paper | seeds | what the paper leads one to expect |
| --- | --- | --- | --- |"""


def pages(found: dict[str, Figures], experiments: dict[str, Experiment], earlier: dict[str, str]) -> dict[str, str]:
    """All pages by their names.

    What ``earlier``, the pages as they are, say of experiments without a complete seed here stays; where they say
    nothing, the overview lists them at its end, with their commands.
    """
    said = _END.join([*earlier.values(), ""])
    rows, missing = [], []
    sections: dict[str, list[str]] = {paper: [] for paper in PAPERS}
    for name, one in experiments.items():
        if _n_seeds(found[name]):
            row, text = _summary_row(one, found[name]), section(one, found[name])
        else:
            row, text = _quoted(f"| `{name}` |", "\n", said), _quoted(f"## {one.title}\n", "\n## ", said)
        if text:
            rows.append(row)
            sections[one.row.paper].append(text)
        else:
            missing.append(f"- {one.title} ({_where(one)}): `{COMMAND} {name} OUT`")
    links = ", ".join(f"[{paper}]({_page_of(paper)})" for paper, texts in sections.items() if texts)
    parts = [_INTRODUCTION, f"Tables and figures: {links}.\n", "\n".join([_SUMMARY, *rows]) + "\n"]
    if missing:
        parts.append("## Not run\n\nImplemented, and tested at minimal size only:\n\n" + "\n".join(missing) + "\n")
    by_paper = {
        _page_of(paper): "\n".join([f"# {paper} in miniature\n", f"How to read this: [overview]({PAGE}).\n", *texts])
        for paper, texts in sections.items()
        if texts
    }
    return {PAGE: "\n".join(parts), **by_paper}


def _page_of(paper: str) -> str:
    return f"reproductions_{PAPERS[paper]}.md"


def section(experiment: Experiment, figures: Figures) -> str:
    """Title, the paper's row, table, comparisons."""
    lines = [
        f"## {experiment.title}",
        "",
        f"`{experiment.name}`; {_where(experiment)}: {experiment.row.figures}.",
        *([experiment.note] if experiment.note else []),
        "",
        table(experiment, figures),
        "",
        *(comparison_line(one, compared(one, figures)) for one in experiment.comparisons),
        "",
        f"![A point per seed, the bar their mean](images/{experiment.name}.png)",
        "",
    ]
    return "\n".join(lines)


def table(experiment: Experiment, figures: Figures) -> str:
    """Markdown: a line per arm, each measure as the mean over seeds with the least and the greatest."""
    measures = [MEASURES[name] for name in experiment.measures]
    rows = []
    for arm in experiment.arms:
        values = ([one[name] for one in figures[arm.name].values()] for name in experiment.measures)
        cells = (_spread(seeds, is_share=one.is_share) for seeds, one in zip(values, measures, strict=True))
        rows.append([f"{arm.name}: {arm.says}", *cells])
    n_seeds = f"{_n_seeds(figures)} of {len(experiment.seeds)}"
    return markdown_table([f"arm, {n_seeds} seeds", *(one.label for one in measures)], rows)


def compared(comparison: Comparison, figures: Figures) -> Paired:
    """The difference in one measure, within each seed. Raises ``ValueError`` where no seed is complete."""
    arm, against = (
        {seed: measured[comparison.measure] for seed, measured in figures[name].items()}
        for name in (comparison.arm, comparison.against)
    )
    return paired(arm, against)


def comparison_line(comparison: Comparison, result: Paired) -> str:
    """One list item: the difference, its interval, by seed, the sign test, and what follows."""
    measure = MEASURES[comparison.measure]
    differences = ", ".join(_difference(value, is_share=measure.is_share) for value in result.differences.values())
    ends = [_difference(end, is_share=measure.is_share) for end in (result.low, result.high)]
    interval = f"; 95 % {ends[0]} to {ends[1]}" if math.isfinite(result.low) else ""
    unit = " points" if measure.is_share else ""
    return (
        f"- **{result.verdict(comparison.expected)}:** *{measure.label}* {comparison.expected} in "
        f"{comparison.arm} than in {comparison.against}: {_difference(result.mean, is_share=measure.is_share)}{unit} "
        f"(by seed {differences}{interval}; p = {result.p_sign:.2g})"
    )


def plot(experiment: Experiment, figures: Figures, path: Path) -> None:
    """A panel per measure: bars are means, points are seeds, a line joins the arms of a seed."""
    names = [arm.name for arm in experiment.arms]
    figure = new_figure(2.9, width=2.9 * len(experiment.measures))
    panels = figure.subplots(1, len(experiment.measures), squeeze=False)[0]
    for axes, key in zip(panels, experiment.measures, strict=True):
        for place, name in enumerate(names):
            values = [measured[key] for measured in figures[name].values()]
            axes.bar(place, fmean(values), color=COLOURS[place % len(COLOURS)], width=0.62, alpha=0.8)
        for seed in figures[names[0]]:
            values = [figures[name][seed][key] for name in names]
            axes.plot(range(len(names)), values, "o-", color="#1d2127", markersize=3, linewidth=0.6, alpha=0.7)
        axes.set_title(MEASURES[key].label, fontsize=9)
        axes.set_ylim(0, 1.02 if MEASURES[key].is_share else None)
        axes.set_xticks(range(len(names)), [name.replace("_", "\n") for name in names], fontsize=8)
        axes.tick_params(axis="y", labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _summary_row(experiment: Experiment, figures: Figures) -> str:
    verdicts = [
        f"{one.arm} {one.expected} than {one.against} ({MEASURES[one.measure].label}): "
        f"**{compared(one, figures).verdict(one.expected)}**"
        for one in experiment.comparisons
    ]
    n_seeds = f"{_n_seeds(figures)} of {len(experiment.seeds)}"
    return f"| `{experiment.name}` | {_where(experiment)} | {n_seeds} | {'; '.join(verdicts)} |"


def _quoted(begin: str, end: str, text: str) -> str:
    """From the first ``begin`` to what precedes the next ``end``; empty where it does not begin."""
    _, found, rest = text.partition(begin)
    return found + rest.partition(end)[0]


def _where(experiment: Experiment) -> str:
    return f"{experiment.row.paper}, {experiment.row.where}"


def _n_seeds(figures: Figures) -> int:
    return len(next(iter(figures.values())))


def _difference(value: float, *, is_share: bool) -> str:
    """Shares in points; a tenth of a point only where a whole one would read as none."""
    if is_share and 0 < abs(value) < 0.005:
        return f"{100 * value:+.1f}"
    return f"{100 * value:+.0f}" if is_share else f"{value:+.2f}"


def _spread(values: list[float], *, is_share: bool) -> str:
    least, mean, most = (
        f"{value:.0%}" if is_share else f"{value:.2f}" for value in (min(values), fmean(values), max(values))
    )
    return mean + (f" ({least} – {most})" if least != most else "")
