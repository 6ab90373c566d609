"""Rows of the ``rl`` dataset: the prompt as turns, and what a reward reads beside the answer.

The prompt is the protocol's own opening, with the choices below the question: what a rollout of Darkroom begins with.
Nothing of what was measured is in it. What was not measured of a row is null.
"""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from darkroom.pipelines.publishing.layouts.base import TEXT, Column, ExportRow, texts
from darkroom.pipelines.publishing.layouts.turns import (
    Row,
    Turn,
    Unfit,
    Unrenderable,
    question_turns,
    record_of,
    refs,
    require_types,
)
from darkroom.pipelines.records import Grader, TruthBox, to_row
from darkroom.pipelines.records.schemas import arrow_type

GRADED: list[Column] = [("question", TEXT), ("choices", pa.list_(TEXT)), ("grader", arrow_type(Grader))]
"""What a rule needs besides the answer."""
FACTS: list[Column] = [
    *texts("category", "difficulty", "source", "license"),
    ("pass_rate", pa.float64()),
    ("suitable", pa.bool_()),
    ("necessity_prior", pa.float64()),
    ("boxes", pa.list_(arrow_type(TruthBox))),
    *texts("protocol", "mode"),
]
"""What else a reward may read: shares in 0..1 (``necessity_prior`` -1..1), boxes in pixels of ``images[image]``."""


def prompt(row: Row) -> tuple[Turn, ...]:
    """The conversation before the model's first turn. Raises ``Unrenderable``, for videos and malformed rows, too."""
    require_types(row, texts=("sample_id", "question", "answer"), lists=("choices", "boxes", "image_refs"))
    if not isinstance(row["grader"], Mapping):
        raise Unrenderable(Unfit.MALFORMED_ROW, f"`grader` is {row['grader']!r}; expected a grader")
    grader_of(row)
    if not row["answer"].strip():
        raise Unrenderable(Unfit.MALFORMED_ROW, "the answer is empty: nothing could be right")
    if row["video_refs"]:
        raise _about_a_video()
    return question_turns(row, refs(row))


def without_videos(row: ExportRow) -> ExportRow:
    """``row``, a trajectory's. Raises ``Unrenderable`` when its prompt is about a video that only the sandbox has."""
    if row.row.get("videos"):
        raise _about_a_video()
    return row


def graded(row: Row) -> dict[str, Any]:
    """The columns of ``GRADED``, words as they are: no rule compares escaped ones."""
    return {"question": row["question"], "choices": list(row["choices"]), "grader": to_row(grader_of(row))}


def measured(row: Row) -> dict[str, Any]:
    """The columns of ``FACTS``."""
    return {name: row[name] for name, _ in FACTS}


def ground_truth(row: Row) -> str:
    """All that a reward reads, as JSON: for trainers that hand nothing but one text to it."""
    return json.dumps({"answer": row["answer"], **graded(row), **measured(row)}, ensure_ascii=False, sort_keys=True)


def prompt_columns(messages: Column, *, image: pa.DataType, answer: str) -> list[Column]:
    """The columns of ``prompt_record``."""
    return [("sample_id", TEXT), messages, ("images", pa.list_(image)), (answer, TEXT), *GRADED, *FACTS]


def prompt_record(row: ExportRow, **columns: Any) -> dict[str, Any]:
    """The record of a trainer that hands every column to its rewards: messages and answer are ``columns``."""
    images = list(row.media)
    return {"sample_id": row.row["sample_id"], **columns, "images": images, **graded(row.row), **measured(row.row)}


def grader_of(row: Row) -> Grader:
    """The row's grader. Raises ``Unrenderable`` (malformed_row)."""
    grader: Grader = record_of(Grader, row["grader"])
    return grader


def _about_a_video() -> Unrenderable:
    evidence = "the prompt is about a video that is in the sandbox only; a prompt alone loses it"
    return Unrenderable(Unfit.VIDEOS_UNSUPPORTED, evidence)
