"""Layouts of the ``rl`` dataset: a row's prompt as turns, what a reward reads beside the answer, the reward file.

The prompt is the protocol's own opening, with the choices below the question: what a rollout of Darkroom begins with.
Nothing of what was measured is in it. What was not measured of a row is null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.publishing.layouts.base import ExportFacts, ExportRow, Layout, Media
from pipelines.publishing.layouts.turns import (
    Row,
    Turn,
    Unfit,
    Unrenderable,
    question_turns,
    record_of,
    refs,
    require_types,
)
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
REWARD_FILE = "reward.py"
REWARD = Path(__file__).with_name(REWARD_FILE)
ALONE = ("choice", "number", "text")
"""The kinds of graders that ``reward.py`` implements itself."""


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


def grader_of(row: Row) -> Grader:
    """The row's grader. Raises ``Unrenderable`` (malformed_row)."""
    grader: Grader = record_of(Grader, row["grader"])
    return grader


def _about_a_video() -> Unrenderable:
    evidence = "the prompt is about a video that is in the sandbox only; a prompt alone loses it"
    return Unrenderable(Unfit.VIDEOS_UNSUPPORTED, evidence)


def prompt_layout(
    name: str,
    *,
    trainer: str,
    description: str,
    messages: str,
    render: Callable[[ExportRow], dict[str, Any]],
    usage: Callable[[ExportFacts], str],
    schema: pa.Schema,
    media: Media = "bytes",
) -> Layout:
    """A layout of prompts, with the reward file beside the rows."""
    return Layout(
        name=name,
        trainer=trainer,
        description=description,
        messages=messages,
        media=media,
        render=render,
        usage=usage,
        schema=schema,
        of="prompts",
        prompts_only=True,
        extra_files=lambda facts: {REWARD_FILE: REWARD.read_text()},
    )


def about(facts: ExportFacts) -> str:
    """Markdown for every README of prompts."""
    kinds = ", ".join(f"{kind} {n}" for kind, n in facts.graders.items())
    more = [kind for kind in facts.graders if kind not in ALONE]
    needs = (
        f"`reward.py` alone grades {', '.join(ALONE)}, more strictly than Darkroom.\n"
        f"Rows of the kinds {', '.join(more)} raise `NeedsToolkit` until `pip install darkroom-toolkit`:\n"
        "its rules then grade all kinds."
        if more
        else "`reward.py` alone grades all of them, more strictly than Darkroom;\n"
        "`pip install darkroom-toolkit` brings its rules."
    )
    judged = (
        "\nA judged answer is compared by its words only: ask a judge with `pipelines.verification.grading.judged`."
        if "judged" in more
        else ""
    )
    return f"""\
Each row is a prompt in the protocol {facts.protocol}, mode {facts.mode}: its system words, the images, the question
with its choices, as Darkroom's own rollouts begin. Observations are made by your environment.
Graders: {kinds}.
{needs}{judged}
`pass_rate`, `suitable`, `necessity_prior` and `difficulty` were measured before training, and are null where they were
not; `boxes` are pixels of `images[image]`. None of them is in the prompt.
"""
