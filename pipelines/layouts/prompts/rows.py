"""A row of the ``rl`` dataset: its prompt as turns, and what a reward reads beside the answer.

The prompt is the protocol's own opening, with the choices below the question: what a rollout of Darkroom begins with.
Nothing of what was measured is in it. What was not measured of a row is null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipelines.layouts.base import Said
from pipelines.layouts.faults import Unfit, Unrenderable
from pipelines.layouts.text import with_placeholders
from pipelines.layouts.turns import Row, Turn, asked, record_of, refs
from pipelines.records import Grader, to_row

_text, _float, _int = pa.string(), pa.float64(), pa.int64()
GRADER = pa.struct([("kind", _text), ("tolerance", _float), ("unit", _text), ("is_ordered", pa.bool_())])
BOX = pa.struct([("label", _text), *((side, _int) for side in ("x1", "y1", "x2", "y2", "image"))])
GRADED: list[tuple[str, pa.DataType]] = [("question", _text), ("choices", pa.list_(_text)), ("grader", GRADER)]
"""What a rule needs besides the answer."""
FACTS: list[tuple[str, pa.DataType]] = [
    ("category", _text),
    ("difficulty", _text),
    ("source", _text),
    ("license", _text),
    ("pass_rate", _float),
    ("suitable", pa.bool_()),
    ("necessity_prior", _float),
    ("boxes", pa.list_(BOX)),
    ("protocol", _text),
    ("mode", _text),
]
"""What else a reward may read: shares in 0..1 (``necessity_prior`` -1..1), boxes in pixels of ``images[image]``."""
_WORDS = ("sample_id", "question", "answer")
_LISTS = ("choices", "boxes", "image_refs")


def prompt(row: Row) -> tuple[Turn, ...]:
    """The conversation before the model's first turn. Raises ``Unrenderable``, for videos and malformed rows, too."""
    _require(row)
    if row["video_refs"]:
        raise Unrenderable(
            Unfit.VIDEOS_UNSUPPORTED, "the prompt is about a video that is in the sandbox only; a prompt alone loses it"
        )
    return asked(row, refs(row))


def messages(said: Said) -> list[dict[str, str]]:
    """The prompt as messages of text, a picture as ``<image>``."""
    return [{"role": turn.role, "content": with_placeholders(turn.parts)} for turn in said.turns]


def graded(row: Row) -> dict[str, Any]:
    """The columns of ``GRADED``, words as they are: no rule compares escaped ones."""
    return {"question": row["question"], "choices": list(row["choices"]), "grader": to_row(grader_of(row))}


def facts(row: Row) -> dict[str, Any]:
    """The columns of ``FACTS``."""
    return {name: row[name] for name, _ in FACTS}


def ground_truth(row: Row) -> str:
    """All that a reward reads, as JSON: for trainers that hand nothing but one text to it."""
    return json.dumps({"answer": row["answer"], **graded(row), **facts(row)}, ensure_ascii=False, sort_keys=True)


def grader_of(row: Row) -> Grader:
    """The row's grader. Raises ``Unrenderable`` (malformed_row)."""
    found: Grader = record_of(Grader, row["grader"])
    return found


def _require(row: Row) -> None:
    for name in _WORDS:
        if not isinstance(row[name], str):
            raise Unrenderable(Unfit.MALFORMED_ROW, f"`{name}` is {row[name]!r}; expected a text")
    for name in _LISTS:
        if not isinstance(row[name], Sequence):
            raise Unrenderable(Unfit.MALFORMED_ROW, f"`{name}` is {row[name]!r}; expected a list")
    if not isinstance(row["grader"], Mapping):
        raise Unrenderable(Unfit.MALFORMED_ROW, f"`grader` is {row['grader']!r}; expected a grader")
    grader_of(row)
    if not row["question"].strip():
        raise Unrenderable(Unfit.EMPTY_TURN, "the question is empty")
    if not row["answer"].strip():
        raise Unrenderable(Unfit.MALFORMED_ROW, "the answer is empty: nothing could be right")
