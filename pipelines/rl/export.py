"""The RL dataset's files: a parquet file per split, images embedded, one column per fact that a reward may need."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datasets import Features, Image, List, Value

from pipelines.export import IMAGE_REF, VIDEO_REF, Shipped, embedded, write_split
from pipelines.images import ImageStore
from pipelines.records import RLRow, to_row
from pipelines.tasks import question_text

_text, _int, _float, _bool = Value("string"), Value("int64"), Value("float64"), Value("bool")
FEATURES = Features(
    {
        "sample_id": _text,
        "prompt": _text,
        "question": _text,
        "choices": List(_text),
        "images": List(Image()),
        "answer": _text,
        "grader": {"kind": _text, "tolerance": _float, "unit": _text, "is_ordered": _bool},
        "category": _text,
        "difficulty": _text,
        "origin": _text,
        "pass_rate": _float,
        "n_right": _int,
        "n_answers": _int,
        "never_solved": _bool,
        "student": _text,
        "necessity_prior": _float,
        "accuracy_forced": _float,
        "accuracy_forbidden": _float,
        "necessity_model": _text,
        "suitable": _bool,
        "suitability_majority": _text,
        "suitability_yes": _int,
        "suitability_no": _int,
        "boxes": List({"label": _text, "x1": _int, "y1": _int, "x2": _int, "y2": _int, "image": _int}),
        "source": _text,
        "source_row": _text,
        "license": _text,
        "image_refs": List(IMAGE_REF),
        "videos": List({"bytes": Value("binary"), "path": _text}),
        "video_refs": List(VIDEO_REF),
    }
)
"""The columns. ``prompt`` is the question with its choices; what was not measured of a row is null."""


def write_rows(folder: Path, rows: Iterable[RLRow], *, store: ImageStore, split: str) -> Shipped:
    """Writes the rows as the parquet file of a split, in their order."""
    return write_split(folder, (flat_row(row, store) for row in rows), FEATURES, split=split)


def flat_row(row: RLRow, store: ImageStore) -> dict[str, Any]:
    """One row as the files have it."""
    sample = row.sample
    return {
        "sample_id": sample.sample_id,
        "prompt": question_text(sample),
        "question": sample.question,
        "choices": list(sample.choices),
        "images": embedded(sample.images, store),
        "answer": sample.answer,
        "grader": to_row(row.grader),
        "category": sample.category,
        "difficulty": row.difficulty,
        "origin": row.origin,
        **_pass_rate(row),
        **_necessity(row),
        **_suitability(row),
        "boxes": [to_row(box) for box in sample.truth.boxes],
        "source": sample.source,
        "source_row": sample.source_row,
        "license": sample.license,
        "image_refs": [to_row(image) for image in sample.images],
        "videos": embedded(sample.videos, store),
        "video_refs": [to_row(video) for video in sample.videos],
    }


def _pass_rate(row: RLRow) -> dict[str, Any]:
    if row.pass_rate is None:
        return dict.fromkeys(("pass_rate", "n_right", "n_answers", "never_solved", "student"))
    votes = row.pass_rate.votes
    return {
        "pass_rate": votes.share,
        "n_right": votes.n_yes,
        "n_answers": votes.n,
        "never_solved": row.pass_rate.never_solved,
        "student": votes.judge,
    }


def _necessity(row: RLRow) -> dict[str, Any]:
    if row.necessity is None:
        return dict.fromkeys(("necessity_prior", "accuracy_forced", "accuracy_forbidden", "necessity_model"))
    return {
        "necessity_prior": row.necessity.prior,
        "accuracy_forced": row.necessity.forced.share,
        "accuracy_forbidden": row.necessity.forbidden.share,
        "necessity_model": row.necessity.forced.judge,
    }


def _suitability(row: RLRow) -> dict[str, Any]:
    label = row.suitability
    if label is None:
        return dict.fromkeys(("suitable", "suitability_majority", "suitability_yes", "suitability_no"))
    return {
        "suitable": label.suitable,
        "suitability_majority": label.majority,
        "suitability_yes": label.n_yes,
        "suitability_no": label.n_no,
    }
