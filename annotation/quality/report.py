"""A campaign's quality for people: one HTML page without network requests; the headline as numbers, markdown and plots.
The page names people by their e-mail addresses: it is for the team lead. The same figures give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from darkroom.annotation._plugin.darkroom_studio.content import VERDICTS
from darkroom.annotation.quality.metrics import Quality
from darkroom.annotation.quality.outliers import find_outliers
from darkroom.annotation.rounds.submissions import ROUNDS
from darkroom.pipelines.inspection import charts
from darkroom.pipelines.inspection.pages import html_page
from darkroom.pipelines.publishing.rendering import templates
from darkroom.pipelines.verification.proportion import Proportion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEMPLATES = Path(__file__).with_name("templates")
_PANELS = {"accept": "agreement among experts (alpha)", "cross_check": "agreement of two checkers (alpha)"}


def render(quality: Quality, *, title: str = "annotation", every: float = 0, **lists: Sequence[Any]) -> str:
    """The page; an open one is loaded again after ``every`` seconds, unless 0. ``lists``: ``left_out``, the unsuitable
    images (``Reject``), and ``practice`` (``PracticeResult``)."""
    environment = templates(_TEMPLATES)
    environment.filters |= {"plain": plain, "percent": str, "range": interval, "number": number, "nice": nice}
    flagged = {(outlier.person.email, outlier.measure) for outlier in find_outliers(quality.people)}
    values = {"title": title, "q": quality, "rounds": ROUNDS, "flagged": flagged, "verdicts": VERDICTS, "every": every}
    body = environment.get_template("report.html.jinja").render(values, **{"left_out": (), "practice": (), **lists})
    style, script = ((_TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    page_title = f"{title}: quality of the annotation"
    return html_page(Markup(body), title=page_title, style=style, script=script, has_images=False)


def to_json(value: Any) -> Any:
    """A figure with everything that follows from it; tuples of names become one name, infinite numbers null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {" ".join(name) if isinstance(name, tuple) else name: to_json(each) for name, each in value.items()}
    if is_dataclass(value) or hasattr(value, "_fields"):
        own = [name for name in vars(type(value)) if not name.startswith("_")]
        return {name: to_json(each) for name in own if not callable(each := getattr(value, name))}
    return list(map(to_json, value)) if isinstance(value, list | tuple) else value


def plain(name: str) -> str:
    """A name for display: ``wrong_answer`` is "wrong answer"."""
    return "OCR" if name == "ocr" else name.replace("_", " ")


def interval(share: Proportion) -> str:
    """The interval in percent: "78–94 %"; empty without cases."""
    low, high = share.interval
    return f"{100 * low:.0f}–{100 * high:.0f} %" if share.of else ""


def number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def nice(top: float) -> int:
    """The top of a scale: the next number of one digit and zeros."""
    scale = int(10 ** math.floor(math.log10(max(1.0, top))))
    return math.ceil(max(1.0, top) / scale) * scale


def figures(quality: Quality) -> dict[str, int | float]:
    """The headline as numbers, shares as 0..1; undefined figures are left out."""
    alphas = {panel.round: panel.alpha.alpha for panel in quality.panels if not panel.category and panel.alpha}
    headline: dict[str, int | float | None] = {
        "items": quality.n_items,
        "accepted": quality.n_accepted,
        "rejected": quality.n_rejected,
        "waiting": quality.n_waiting,
        "reworked": quality.n_reworked,
        "blind_match": quality.blind.value,
        "first_pass": quality.first_pass.value,
        "verdict_alpha": quality.verdicts.alpha if quality.verdicts else None,
        "experts_alpha": alphas.get("accept"),
        "checkers_alpha": alphas.get("cross_check"),
        "escaped": quality.escaped.value,
        "box_iou": quality.box_iou,
        "golds_caught": quality.planted_errors_caught.value,
        "minutes_per_accepted": quality.minutes_per_accepted,
        "refused_submissions": sum(quality.invalid.values()),
        "gate_hits": sum(row.n_blocked for row in quality.people),
    }
    return {name: value for name, value in headline.items() if value is not None}


def people_rows(quality: Quality) -> list[dict[str, str | int | float | None]]:
    return [
        {
            "person": row.email,
            "role": row.role,
            "submissions": row.n_submissions,
            "per_hour": _rounded(row.per_hour),
            "record_seconds": _rounded(row.writing_seconds),
            "check_seconds": _rounded(row.checking_seconds),
            "first_pass": _counted(row.first_pass),
            "blind_match": _counted(row.blind),
            "upheld": _counted(row.upheld),
            "golds_caught": _counted(row.planted_errors),
            "gate_hits": row.n_blocked,
            "not_counted": sum(row.invalid.values()),
            "skipped": row.n_skipped,
        }
        for row in quality.people
    ]


def summary(quality: Quality) -> str:
    """The headline as a short markdown table (Dagster hides long texts)."""
    lines = [
        ("accepted", f"{quality.n_accepted:,} of {quality.n_items:,}"),
        ("blind answers match", _counted(quality.blind)),
        ("accepted as first written", _counted(quality.first_pass)),
        ("verdict agreement (alpha)", str(quality.verdicts or "–")),
        *((_PANELS[panel.round], str(panel.alpha or "–")) for panel in quality.panels if not panel.category),
        ("boxes before and after a fix (IoU)", number(quality.box_iou, 2)),
        ("planted errors caught", _counted(quality.planted_errors_caught)),
    ]
    return "\n".join(["| measure | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in lines)])


def _counted(share: Proportion) -> str:
    return f"{share} ({share.n}/{share.of})" if share.of else "–"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def plots(quality: Quality) -> dict[str, bytes]:
    """``rounds``, ``people`` and ``reasons`` as PNG; an empty plot is left out."""
    figures = {"rounds": _rounds(quality)}
    if quality.people:
        figures["people"] = _people(quality)
    if quality.reasons:
        figures["reasons"] = _reasons(quality)
    return {name: charts.png(figure) for name, figure in figures.items()}


def _rounds(quality: Quality) -> Figure:
    names, counts = list(quality.funnel), list(quality.funnel.values())
    figure, axes = charts.new_axes(0.45 * len(names) + 0.8)
    bars = axes.barh(range(len(names)), counts, color=[charts.BLUE] * (len(names) - 1) + [charts.GREEN], height=0.62)
    axes.bar_label(bars, [f" {n:,}" for n in counts], color=charts.INK, fontsize=9)
    waiting = ", ".join(f"{n} in {name.replace('_', '-')}" for name, n in quality.waiting.items() if n) or "none"
    _name_rows(axes, names)
    axes.set_title(f"Waiting: {waiting}; rejected: {quality.n_rejected}", fontsize=9, color=charts.SOFT, loc="left")
    axes.set_xlim(0, max(1, *counts) * 1.1)
    charts.styled(axes)
    return figure


def _people(quality: Quality) -> Figure:
    """Speed on the left, first-pass acceptance on the right: neither says much alone."""
    rows = quality.people
    figure = charts.new_figure(0.27 * len(rows) + 0.9)
    fast, good = figure.subplots(1, 2, sharey=True)
    _name_rows(fast, [row.email for row in rows])
    colours = [charts.ORANGE if row.role == "expert" else charts.BLUE for row in rows]
    fast.barh(range(len(rows)), [row.per_hour or 0 for row in rows], color=colours, height=0.62)
    fast.set_title("submissions per active hour (orange: experts)", fontsize=9, color=charts.INK, loc="left")
    for position, row in enumerate(rows):
        if row.first_pass.value is not None:
            low, high = row.first_pass.interval
            good.plot([100 * low, 100 * high], [position, position], color=charts.SOFT, linewidth=1.2)
            good.plot([100 * row.first_pass.value], [position], "o", color=charts.GREEN, markersize=5)
    if quality.first_pass.value is not None:
        good.axvline(100 * quality.first_pass.value, color=charts.INK, linewidth=0.8, linestyle=":")
    good.set_title("accepted as first written, % (95 % interval)", fontsize=9, color=charts.INK, loc="left")
    good.set_xlim(0, 102)
    for axes in (fast, good):
        charts.styled(axes)
    return figure


def _reasons(quality: Quality) -> Figure:
    names = [reason.replace("_", " ") for reason in quality.reasons]
    figure, axes = charts.new_axes(0.32 * len(names) + 0.9)
    charts.mark_integers(axes.xaxis)
    checks = [counts["cross_check"] for counts in quality.reasons.values()]
    _name_rows(axes, names)
    axes.barh(range(len(names)), checks, color=charts.BLUE, height=0.62, label="in cross-check")
    experts = [counts["accept"] for counts in quality.reasons.values()]
    bars = axes.barh(range(len(names)), experts, left=checks, color=charts.ORANGE, height=0.62, label="in acceptance")
    axes.bar_label(bars, [f" {a + b}" for a, b in zip(checks, experts, strict=True)], color=charts.INK, fontsize=9)
    axes.margins(x=0.1)
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    charts.styled(axes)
    return figure


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """From the top, by position, since names may repeat; a name with a dollar sign is no formula."""
    axes.set_yticks(range(len(names)), labels=names, parse_math=False)
    axes.invert_yaxis()
