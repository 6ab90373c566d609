"""What a person is given: one task of Label Studio, made from a record's state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from annotation import choices
from annotation.geometry import largest_square, to_percent
from annotation.rounds import State
from annotation.submissions import Fields
from pipelines.records import ImageRef

N_SEATS = {"annotate": 0, "cross_check": 1, "accept": 2, "rework": 1, "review": 0, "verify": 0, "suitability": 0}
"""Seats that a round's project reckons with; a task that needs another number gets an overlap of its own."""
PREFILLED = "the record"
PRE_ANNOTATED = "**A model filled this in.** Check every box and every word, or write something better."
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&])")


def record_task(
    key: str,
    image: ImageRef,
    state: State,
    *,
    round: str,
    max_share: float,
    pre_annotation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The task of a round. ``pre_annotation`` is a policy's prediction for the first one."""
    data: dict[str, Any] = {
        "key": key,
        "image": f"/darkroom/images/{image.sha256}",
        "gate": {"kind": round, "max_share": max_share},
    }
    if round in ("annotate", "rework"):
        data["rules"] = rules_shown(image, max_share)
    if round == "annotate" and pre_annotation is not None:
        data["rules"] += f"\n\n{PRE_ANNOTATED}"
    if round == "rework":
        data["reasons"] = reasons_shown(state)
    if round in ("cross_check", "accept") and state.fields is not None:
        data["question_shown"] = f"**Question:** {plain(state.fields.question)}"
        data["record_shown"] = record_shown(state.fields)
    task: dict[str, Any] = {"data": data}
    if round != "annotate" and state.fields is not None:
        task["predictions"] = [{"model_version": PREFILLED, "result": results(state.fields, image)}]
    elif pre_annotation is not None:
        task["predictions"] = [dict(pre_annotation)]
    if seats := state.seats:
        # Label Studio serves a task to nobody who has an annotation on it; ground_truth would be true if left out
        task["annotations"] = [{"completed_by": seat, "result": [], "ground_truth": False} for seat in seats]
    return task


def results(fields: Fields, image: ImageRef) -> list[dict[str, Any]]:
    """A record as Label Studio's result list, for a prediction."""
    frame = {"original_width": image.width, "original_height": image.height, "image_rotation": 0}
    found: list[dict[str, Any]] = [
        {
            "id": f"box{number}",
            "from_name": "box",
            "to_name": "image",
            "type": "rectanglelabels",
            **frame,
            "value": {**to_percent(box, image.width, image.height), "rectanglelabels": ["target"]},
        }
        for number, box in enumerate(fields.boxes, 1)
    ]
    if fields.category:
        found.append(_result("category", "choices", {"choices": [fields.category]}))
    for name, text in (("question", fields.question), ("answer", fields.answer)):
        if text:
            found.append(_result(name, "textarea", {"text": [text]}))
    if fields.count is not None:
        found.append(_result("count", "number", {"number": fields.count}))
    return found


def _result(name: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": "image", "type": kind, "value": dict(value)}


def rules_shown(image: ImageRef, max_share: float) -> str:
    """The size rule in this image's own pixels."""
    side = largest_square(max_share, image.width, image.height)
    pixels = int(max_share * image.width * image.height)
    return (
        f"**This image has {image.width:,} × {image.height:,} pixels.** No box may cover more than {max_share:.0%} of "
        f"it: **{pixels:,} pixels**, a square of {side:,} × {side:,}. The line at the bottom says how large yours is."
    )


def record_shown(fields: Fields) -> str:
    """The record's answer, in Markdown; its question stands above."""
    titles = {category.name: category.title for category in choices.CATEGORIES}
    count = "" if fields.count is None else f"\n\n**Count:** {fields.count}"
    category = titles.get(fields.category, fields.category)
    return f"**Answer:** {plain(fields.answer)}\n\n**Category:** {category}{count}"


def reasons_shown(state: State) -> str:
    """Why a record came back: the last verdict, without names."""
    titles = {reason.name: reason.title for reason in choices.REASONS}
    last = state.history[-1]
    said = [plain(titles.get(reason, reason)) for reason in last.reasons]
    comment = [f"“{plain(last.comment)}”"] if last.comment else []
    lines = "\n".join(f"- {line}" for line in [*said, *comment])
    return f"**This record came back:**\n\n{lines}\n\nCorrect it, or ask something better about the image."


def plain(text: str) -> str:
    """People's words in Markdown, with nothing in them that Markdown would read."""
    return _MARKUP.sub(r"\\\1", text).replace("\n", "  \n")
