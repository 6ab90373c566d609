"""The layout: how a row becomes a trainer's record, and the facts of an export for its README. An ``rl`` prompt is the
protocol's own opening, with choices below the question and nothing measured; null is what was not measured."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
import yaml

from darkroom.pipelines.publishing.dataset_reader import Kind
from darkroom.pipelines.publishing.layouts.export_source import ExportSource
from darkroom.pipelines.publishing.layouts.turns import (
    Row,
    Turn,
    Unfit,
    Unrenderable,
    question_turns,
    record_of,
    refs,
    require_types,
    with_placeholders,
)
from darkroom.pipelines.records import Grader, TruthBox, to_row
from darkroom.pipelines.records.rl import shipped_grader
from darkroom.pipelines.records.schemas import arrow_type

Media = Literal["paths", "bytes", "none"]
"""How images are stored: files beside the rows, inside them, or (a trainer of texts) not at all."""
Column = tuple[str, pa.DataType]
_VIDEO = "the prompt is about a video that is in the sandbox only; a prompt alone loses it"
TEXT, BYTES = pa.string(), pa.binary()
IMAGE = pa.struct([("bytes", BYTES), ("path", TEXT)])
MESSAGE = pa.struct([("role", TEXT), ("content", TEXT)])


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A row with its turns, and what is stored for each image in them, in order."""

    row: Row
    turns: tuple[Turn, ...]
    media: tuple[Any, ...]
    split: str = "train"
    index: int = 0
    """The row's place in the dataset."""

    @property
    def loss(self) -> str:
        """``last_round`` when the loss excludes some of the model's own turns, else ``all_rounds``."""
        return "all_rounds" if all(turn.trained for turn in self.turns if turn.role == "assistant") else "last_round"

    def messages(self) -> list[dict[str, Any]]:
        """The turns as messages of text, an image as ``<image>``."""
        return [{"role": turn.role, "content": with_placeholders(turn.parts)} for turn in self.turns]


@dataclass(frozen=True, slots=True)
class ExportFacts:
    """Facts of a written export, for its README."""

    source: ExportSource
    files: Mapping[str, int]
    """Rows of every file, by its name."""
    n_rows: int
    n_images: int
    most_pixels: int
    """Of the largest image: a trainer's limit below it would shrink what rows look for."""
    reasons: Mapping[str, int]
    """Rejected rows, by reason."""
    graders: Mapping[str, int]
    """Prompts by the kind of their grader."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One trainer's form of the dataset; ``readmes/<of>/<name>.md.jinja`` tells its user how to train on it."""

    name: str
    trainer: str
    description: str
    """One line for people who choose."""
    render: Callable[[ExportRow], dict[str, Any]]
    """The record. Raises ``Unrenderable`` for what the trainer cannot hold."""
    messages: str = "messages"
    """The column with the conversation."""
    media: Media = "bytes"
    schema: pa.Schema | None = None
    """The columns of its parquet files; None: JSON lines."""
    of: Kind = "trajectories"
    prompts_only: bool = False
    """Whether rows end before the model's first turn, for reinforcement learning."""
    by_loss: bool = False
    """Whether rows are in one file per loss policy, for trainers that have one policy per run."""
    in_pieces: bool = False
    """Whether one turn of the model is several messages that follow each other."""
    extra_files: Callable[[ExportFacts], Mapping[str, str]] = field(default=lambda facts: {})
    """Files that the trainer reads besides, by name."""


_DECLARED = yaml.safe_load(Path(__file__).with_name("layouts.yaml").read_text(encoding="utf-8"))


def declared(of: Kind, name: str, render: Callable[[ExportRow], dict[str, Any]], **code: Any) -> Layout:
    """The layout that ``layouts.yaml`` declares, with its code."""
    return Layout(name=name, render=render, of=of, **_DECLARED[of][name], **code)


def sft_record(row: ExportRow, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"trajectory_id": row.row["trajectory_id"], "messages": messages, "images": list(row.media)}


def texts(*names: str) -> list[Column]:
    return [(name, TEXT) for name in names]


def hf_schema(columns: Sequence[Column]) -> pa.Schema:
    """The schema with the key that `datasets` itself would write: without it, images read as plain structs."""
    features = {name: _feature(kind) for name, kind in columns}
    return pa.schema(columns, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def _feature(kind: pa.DataType) -> Any:
    if kind == IMAGE:
        return {"_type": "Image"}
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    if pa.types.is_struct(kind):
        return {kind.field(index).name: _feature(kind.field(index).type) for index in range(kind.num_fields)}
    return {"dtype": {"double": "float64"}.get(str(kind), str(kind)), "_type": "Value"}


_GRADER = pa.struct([*arrow_type(Grader), ("accepted", pa.list_(TEXT))])
GRADED: list[Column] = [("question", TEXT), ("choices", pa.list_(TEXT)), ("grader", _GRADER)]
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
        raise Unrenderable(Unfit.VIDEOS_UNSUPPORTED, _VIDEO)
    return question_turns(row, refs(row))


def without_videos(row: ExportRow) -> ExportRow:
    """``row``, a trajectory's. Raises ``Unrenderable`` when its prompt is about a video that only the sandbox has."""
    if row.row.get("videos"):
        raise Unrenderable(Unfit.VIDEOS_UNSUPPORTED, _VIDEO)
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
    return [("sample_id", TEXT), messages, ("images", pa.list_(image)), (answer, TEXT), *GRADED, *FACTS]


def prompt_record(row: ExportRow, **columns: Any) -> dict[str, Any]:
    """The record of a trainer that hands every column to its rewards: messages and answer are ``columns``."""
    images = list(row.media)
    return {"sample_id": row.row["sample_id"], **columns, "images": images, **graded(row.row), **measured(row.row)}


def grader_of(row: Row) -> Grader:
    """The row's grader. Raises ``Unrenderable`` (malformed_row)."""
    return cast(Grader, record_of(Grader, shipped_grader(row)))
