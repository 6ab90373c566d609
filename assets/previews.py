"""What an asset's page shows at a glance: the rows as pictures, the rejects by reason, where the rows went."""

import base64
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
from PIL import Image, ImageDraw

from pipelines.geometry import Box
from pipelines.images import ImageStore
from pipelines.judging import Judging
from pipelines.records import ImageRef, Reject, Sample, Trajectory
from pipelines.stages import Report, reason_of

THUMBNAIL_SIDE = 220
N_PREVIEWED = 4
N_EXAMPLES = 3
SHOWN_INLINE = 1000
"""Characters of markdown from which Dagster's UI shows a link instead (1.13, ``MarkdownMetadataEntry``)."""

_BAR = 30


def stage_metadata(report: Report, *, path: str) -> dict[str, dg.MetadataValue]:
    """Counts that the UI plots over time, the cost, and whether anything had to be done."""
    return {
        "dagster/row_count": dg.MetadataValue.int(report.n_out),
        "dagster/uri": dg.MetadataValue.path(path),
        "rows_in": dg.MetadataValue.int(report.n_in),
        "rows_out": dg.MetadataValue.int(report.n_out),
        "rejected": dg.MetadataValue.int(report.n_rejected),
        "quarantined": dg.MetadataValue.int(report.n_quarantined),
        "cost_usd": dg.MetadataValue.float(report.usage.cost_usd),
        "performed_now": dg.MetadataValue.int(report.performed),
        "reused": dg.MetadataValue.bool(report.reused),
        "funnel": dg.MetadataValue.md(funnel([("in", report.n_in), ("out", report.n_out)])),
    }


def funnel(steps: Sequence[tuple[str, int]]) -> str:
    """Rows left after each step, as bars."""
    widest = max((n for _, n in steps), default=0) or 1
    lines = [f"{name:<14} {'█' * round(_BAR * n / widest):<{_BAR}} {n:,} ({n / widest:.0%})" for name, n in steps]
    return "```\n" + "\n".join(lines) + "\n```"


def rejects_metadata(rejects: Sequence[Reject]) -> dict[str, dg.MetadataValue]:
    """Every reason with its count, one example and what it means for the row."""
    if not rejects:
        return {}
    counts = Counter(map(reason_of, rejects))
    examples = {reason_of(rejected): rejected for rejected in reversed(rejects)}
    records = [
        dg.TableRecord(
            {
                "reason": reason,
                "disposition": examples[reason].disposition,
                "rows": n,
                "example": examples[reason].source_row,
                "evidence": examples[reason].evidence[:200],
            }
        )
        for reason, n in counts.most_common()
    ]
    return {"rejects_by_reason": dg.MetadataValue.table(records)}


def judging_metadata(judging: Judging) -> dict[str, dg.MetadataValue]:
    """Who judged and how far people agree; how often the questions are answered without aid."""
    found: dict[str, dg.MetadataValue] = {}
    if judging.judges:
        found["judges"] = dg.MetadataValue.table([dg.TableRecord(_judge(judge)) for judge in judging.judges])
    for one in judging.measured:
        found[f"{one.check}_share_right"] = dg.MetadataValue.float(round(one.share, 4))
    if judging.measured:
        found["necessity"] = dg.MetadataValue.table(
            [
                dg.TableRecord(
                    {
                        "asked": one.how,
                        "by": judging.asked,
                        "rows": one.n_rows,
                        "right": f"{one.n_right} of {one.n_trials} answers",
                        "right at least once": one.n_ever,
                        "taken out": one.n_failed,
                    }
                )
                for one in judging.measured
            ]
        )
    return found


def _judge(judge: Mapping[str, Any]) -> dict[str, str | int]:
    frozen = judge["calibration"]
    facts: dict[str, str | int] = {"check": judge["check"], "judge": judge["judge"], "votes": judge["n_votes"]}
    if frozen is None:
        return facts | {"calibration": "not calibrated", "labels": 0, "precision": "", "recall": "", "kappa": ""}
    numbers = frozen["calibration"]
    measured = {name: _rounded(numbers[name]["value"]) for name in ("precision", "recall", "kappa")}
    return facts | {"calibration": frozen["labelled"], "labels": numbers["n_labels"]} | measured


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def samples_examples(samples: Sequence[Sample], store: ImageStore) -> dict[str, dg.MetadataValue]:
    """A few samples small enough for the UI to show them on the asset's page itself."""
    shown = [sample for sample in samples if sample.images][:N_EXAMPLES]
    return {
        f"example_{n}": _example(sample.images[0], f"{sample.question} → **{sample.answer}**", store)
        for n, sample in enumerate(shown, 1)
    }


def trajectories_examples(
    trajectories: Sequence[Trajectory], questions: dict[str, str], store: ImageStore
) -> dict[str, dg.MetadataValue]:
    """A few trajectories by the last thing that they showed, small enough for the asset's page itself."""
    shown = [trajectory for trajectory in trajectories if trajectory.shown_images][:N_EXAMPLES]
    return {
        f"example_{n}": _example(
            trajectory.shown_images[-1], f"{questions.get(trajectory.sample_id, '')} → **{trajectory.answer}**", store
        )
        for n, trajectory in enumerate(shown, 1)
    }


def samples_preview(samples: Sequence[Sample], store: ImageStore) -> dg.MetadataValue:
    """The first samples with pictures; the target's box is drawn in."""
    shown = [sample for sample in samples if sample.images][:N_PREVIEWED]
    rows = [
        (
            _picture(sample.images[0], store, [box.box for box in sample.truth.boxes if box.image == 0]),
            _cell(sample.question),
            _cell(sample.answer),
            sample.source_row,
        )
        for sample in shown
    ]
    return _markdown_table(("image", "question", "answer", "row"), rows)


def trajectories_preview(
    trajectories: Sequence[Trajectory], questions: dict[str, str], store: ImageStore
) -> dg.MetadataValue:
    """The first trajectories: what was seen, what was asked, thought, shown and answered."""
    shown = [trajectory for trajectory in trajectories if trajectory.rounds][:N_PREVIEWED]
    rows = [
        (
            _picture(trajectory.images[0], store) if trajectory.images else "",
            _cell(questions.get(trajectory.sample_id, "")),
            _cell(trajectory.rounds[-1].thought),
            " ".join(_picture(image, store) for image in trajectory.rounds[-1].observation.images[:2]),
            _cell(trajectory.answer),
        )
        for trajectory in shown
    ]
    return _markdown_table(("image", "question", "thought", "observation", "answer"), rows)


def _picture(ref: ImageRef, store: ImageStore, boxes: Iterable[Box] = ()) -> str:
    """A thumbnail as a data URL: the UI shows it without a file server."""
    image = store.open(ref).convert("RGB")
    scale = min(1.0, THUMBNAIL_SIDE / max(image.size))
    small = image.resize(
        (max(1, round(image.width * scale)), max(1, round(image.height * scale))), Image.Resampling.BOX
    )
    draw = ImageDraw.Draw(small)
    for box in boxes:
        left, top, right, bottom = (round(side * scale) for side in box)
        draw.rectangle((left - 2, top - 2, right + 2, bottom + 2), outline=(255, 0, 90), width=2)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    return f"![](data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()})"


def _example(ref: ImageRef, text: str, store: ImageStore) -> dg.MetadataValue:
    """One line with a picture, below the length from which the UI hides markdown behind a link."""
    said = _cell(text)[:200]
    image = store.open(ref).convert("RGB")
    for side in (160, 128, 96, 72, 56, 40):
        small = image.copy()
        small.thumbnail((side, side), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        small.save(buffer, "WEBP", quality=35)
        line = f"![](data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()})\n\n{said}"
        if len(line) < SHOWN_INLINE:
            return dg.MetadataValue.md(line)
    return dg.MetadataValue.md(said)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> dg.MetadataValue:
    lines = [head, ["---"] * len(head), *rows]
    return dg.MetadataValue.md("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
