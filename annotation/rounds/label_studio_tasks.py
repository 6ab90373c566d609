"""Label Studio tasks, made from a record's state."""

import re
from collections.abc import Mapping
from typing import Any

from darkroom.annotation._plugin.darkroom_studio.content import shown_size
from darkroom.annotation.label_studio.forms import CATEGORIES, REASONS, ROUND_FORMS, largest_square, to_percent
from darkroom.annotation.rounds.record_state import RecordState
from darkroom.annotation.rounds.submissions import RecordFields
from darkroom.annotation.rounds.terms import Terms
from darkroom.pipelines.records import FieldChange, ImageRef, PoolImage

N_EXCLUDED = {name: form.n_excluded for name, form in ROUND_FORMS.items()}
"""Excluded annotators that a round's project expects; a task with another number gets its own overlap."""
FEWEST_EXCLUDED = {**N_EXCLUDED, "rework": 0}
"""A rework after a void submission excludes no one: the record was not rejected by a person."""
PREFILLED = "the record"
PRE_ANNOTATED = "**A model filled this in.** Check every box and every word, or write something better."
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


def record_task(
    key: str,
    item: PoolImage,
    state: RecordState,
    *,
    round: str,
    terms: Terms,
    pre_annotation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The task of a round under its ``terms``, which the server's gate reads.

    ``pre_annotation`` is a policy's prediction for the first round.
    """
    image = item.image
    data: dict[str, Any] = {
        "key": key,
        "image": f"/darkroom/images/{item.shown.sha256}",
        "gate": terms.image_rules(image.width, image.height).gate(round),
    }
    if round in ("annotate", "rework"):
        data["rules"] = rules_shown(image, terms.max_share)
    if round == "annotate" and pre_annotation is not None:
        data["rules"] += f"\n\n{PRE_ANNOTATED}"
    if round == "rework":
        data["reasons"] = reasons_shown(state)
    if round == "cross_check":
        data["gate"]["blind_first"] = True  # the server shows the record to whoever has given an own answer
    if round in ("cross_check", "accept") and state.fields is not None:
        data["question_shown"] = f"**Question:** {plain(state.fields.question)}"
        data["record_shown"] = record_shown(state.fields)
    task: dict[str, Any] = {"data": data}
    if round != "annotate" and state.fields is not None:
        task["predictions"] = [{"model_version": PREFILLED, "result": results(state.fields, image)}]
    elif pre_annotation is not None:
        task["predictions"] = [dict(pre_annotation)]
    if state.excluded:
        # Label Studio serves no task to an account with an annotation on it; ground_truth is true by default
        task["annotations"] = [{"completed_by": p, "result": [], "ground_truth": False} for p in state.excluded]
    return task


def results(fields: RecordFields, image: ImageRef) -> list[dict[str, Any]]:
    """A record as Label Studio's result list, for a prediction; its boxes are in pixels of ``image``, the original."""
    width, height = shown_size(image.width, image.height)
    frame = {"original_width": width, "original_height": height, "image_rotation": 0}
    entries: list[dict[str, Any]] = []
    for number, box in enumerate(fields.boxes, 1):
        value = {**to_percent(box, image.width, image.height), "rectanglelabels": ["target"]}
        entries.append({**_result("box", "rectanglelabels", value), "id": f"box{number}", **frame})
    if fields.category:
        entries.append(_result("category", "choices", {"choices": [fields.category]}))
    for name, text in (("question", fields.question), ("answer", fields.answer)):
        if text:
            entries.append(_result(name, "textarea", {"text": [text]}))
    if fields.count is not None:
        entries.append(_result("count", "number", {"number": fields.count}))
    return entries


def _result(name: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": "image", "type": kind, "value": dict(value)}


def rules_shown(image: ImageRef, max_share: float) -> str:
    """The size rule in pixels of this image."""
    side = largest_square(max_share, image.width, image.height)
    pixels = int(max_share * image.width * image.height)
    across, down = shown_size(image.width, image.height)
    reduced = "" if across == image.width else f" You see it reduced to {across:,} × {down:,}."
    return (
        f"**This image has {image.width:,} × {image.height:,} pixels.**{reduced} No box may cover more than "
        f"{100 * max_share:g} % of it: **{pixels:,} pixels**, a square of {side:,} × {side:,}. The line at the bottom "
        "says how large yours is."
    )


def record_shown(fields: RecordFields) -> str:
    """The record's answer, category and count, in Markdown."""
    titles = {category.name: category.title for category in CATEGORIES}
    count = "" if fields.count is None else f"\n\n**Count:** {fields.count}"
    category = titles.get(fields.category, fields.category)
    return f"**Answer:** {plain(fields.answer)}\n\n**Category:** {category}{count}"


def reasons_shown(state: RecordState) -> str:
    """The reasons and comment of the last rejection, without names."""
    titles = {reason.name: reason.title for reason in REASONS}
    last = state.history[-1]
    against = [
        event
        for event in state.history
        if (event.round, event.attempt) == (last.round, last.attempt) and event.verdict in ("fix", "reject")
    ]
    texts: list[str] = []
    for event in against or [last]:
        texts += [plain(titles.get(reason, reason)) for reason in event.reasons]
        texts += [_proposal(change) for change in event.changes]
        texts += [f"“{plain(event.comment)}”"] if event.comment else []
    lines = "\n".join(f"- {line}" for line in dict.fromkeys(texts))
    return f"**This record was rejected:**\n\n{lines}\n\nCorrect it, or ask something better about the image."


def _proposal(change: FieldChange) -> str:
    """What one of several judges would correct."""
    if change.name == "boxes":
        return "Other boxes"
    return f"{change.name.capitalize()}: “{plain(change.before)}” → “{plain(change.after)}”"


def plain(text: str) -> str:
    """Escapes free text for Markdown."""
    return _MARKUP.sub(r"\\\1", text).replace("\n", "  \n")
