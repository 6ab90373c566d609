"""Quality as numbers and as markdown, for a page that plots numbers over time and shows short texts."""

from __future__ import annotations

from annotation.quality import Quality
from pipelines.shares import Share


def figures(quality: Quality) -> dict[str, int | float]:
    """The headline as plain numbers, shares as 0..1; what is not defined is left out."""
    found: dict[str, int | float | None] = {
        "items": quality.n_items,
        "accepted": quality.n_accepted,
        "rejected": quality.n_rejected,
        "waiting": quality.n_waiting,
        "reworked": quality.n_reworked,
        "blind_match": quality.blind.value,
        "first_pass": quality.first_pass.value,
        "verdict_alpha": quality.verdicts.alpha if quality.verdicts else None,
        "escaped": quality.escaped.value,
        "box_iou": quality.box_iou,
        "golds_caught": quality.golds_caught.value,
        "minutes_per_accepted": quality.minutes_per_accepted,
        "refused_submissions": sum(quality.refused.values()),
        "gate_hits": sum(row.n_gate_hits for row in quality.people),
    }
    return {name: value for name, value in found.items() if value is not None}


def people_rows(quality: Quality) -> list[dict[str, str | int | float | None]]:
    """The table of people, one flat row each."""
    return [
        {
            "person": row.name,
            "role": row.role,
            "submissions": row.n_submissions,
            "per_hour": _rounded(row.per_hour),
            "record_seconds": _rounded(row.writing_seconds),
            "check_seconds": _rounded(row.checking_seconds),
            "first_pass": _counted(row.first_pass),
            "blind_match": _counted(row.blind),
            "upheld": _counted(row.upheld),
            "golds_caught": _counted(row.golds),
            "gate_hits": row.n_gate_hits,
            "not_counted": sum(row.refused.values()),
            "skipped": row.n_skipped,
        }
        for row in quality.people
    ]


def summary(quality: Quality) -> str:
    """The headline as a markdown table, short enough for a page that hides long texts."""
    alpha = str(quality.verdicts) if quality.verdicts else "–"
    iou = "–" if quality.box_iou is None else f"{quality.box_iou:.2f}"
    lines = [
        ("accepted", f"{quality.n_accepted:,} of {quality.n_items:,}"),
        ("blind answers match", _counted(quality.blind)),
        ("accepted as first written", _counted(quality.first_pass)),
        ("verdict agreement (alpha)", alpha),
        ("boxes before and after a fix (IoU)", iou),
        ("planted errors caught", _counted(quality.golds_caught)),
    ]
    return "\n".join(["| measure | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in lines)])


def _counted(share: Share) -> str:
    return f"{share} ({share.n}/{share.of})" if share.of else "–"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
