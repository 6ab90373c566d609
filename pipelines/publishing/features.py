"""The columns of shipped datasets as features of the ``datasets`` library, which takes a second to import."""

import json
from typing import Any

import pyarrow as pa
from datasets import Features, Image, List, Value

from darkroom.pipelines.publishing.dataset_reader import SAMPLE, Kind, require_columns
from darkroom.pipelines.records import ImageRef, RLRow, Sample, Trajectory, TruthBox, VideoRef
from darkroom.pipelines.records.schemas import schema_of
from darkroom.pipelines.storage.store_paths import StorePath

_text, _int, _float, _bool = Value("string"), Value("int64"), Value("float64"), Value("bool")


def _columns(kind: type[Any], *names: str) -> dict[str, Any]:
    features = Features.from_arrow_schema(schema_of(kind))
    return {name: features[name] for name in names or features}


def _rounds() -> List:
    turn = _columns(Trajectory, "rounds")["rounds"].feature
    return List({**turn, "observation": {**turn["observation"], "images": List(Value("int32"))}})


_refs = {
    "image_refs": List(_columns(ImageRef)),
    "videos": List({"bytes": Value("binary"), "path": _text}),
    "video_refs": List(_columns(VideoRef)),
}
_measurements = {"pass_rate": _float, "n_right": _int, "n_answers": _int, "never_solved": _bool, "student": _text}
_measurements |= dict.fromkeys(("necessity_prior", "accuracy_forced", "accuracy_forbidden"), _float)
_measurements |= {"necessity_model": _text, "suitable": _bool, "suitability_majority": _text}
_measurements |= dict.fromkeys(("suitability_yes", "suitability_no"), _int)
TRAJECTORIES = Features(
    {
        **_columns(Trajectory, "trajectory_id", "sample_id", "family", "protocol"),
        **_columns(Sample, *SAMPLE),
        "images": List(Image()),
        "n_question_images": Value("int32"),
        "rounds": _rounds(),
        **_columns(Trajectory, "final_thought", "answer", "loss_policy", "mode", "checks", "usage", "provenance"),
        **_refs,
    }
)
"""One trajectory with its question. ``images``: the question's (``n_question_images``), then the observations'."""
PROMPTS = Features(
    {
        "sample_id": _text,
        "prompt": _text,
        **_columns(Sample, "question", "choices"),
        "images": List(Image()),
        **_columns(Sample, "answer"),
        **_columns(RLRow, "grader"),
        "accepted": List(_text),
        **_columns(Sample, "category"),
        **_columns(RLRow, "difficulty", "origin"),
        **_measurements,
        "visual_search": _bool,
        "boxes": List(_columns(TruthBox)),
        **_columns(Sample, "source", "source_row", "license"),
        **_refs,
    }
)
"""One question with its grader. ``prompt`` is the question with its choices; what was not measured is null."""


def features_of(kind: Kind) -> Features:
    return {"prompts": PROMPTS, "trajectories": TRAJECTORIES}[kind]


def check_columns(file: StorePath, kind: Kind) -> None:
    """Raise ``DatasetError`` unless the file has the columns of its kind and no others."""
    require_columns(file, kind, features_of(kind), only=True)


def arrow_schema(features: Features) -> pa.Schema:
    """The parquet schema that ``datasets`` itself would write: without its key, images read as plain structs."""
    return features.arrow_schema.with_metadata({"huggingface": json.dumps({"info": {"features": features.to_dict()}})})
