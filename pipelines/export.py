"""Shipped datasets: a folder that the Hugging Face ``datasets`` library reads with nothing of Darkroom imported.

``<folder>/train-00000-of-00001.parquet`` with the images' bytes embedded, and ``README.md``, the card. One row is one
trajectory with its sample's question; ``images`` holds every image that the row shows, in order: first the question's
(``n_question_images`` of them), then those of the observations, which name them by index. ``videos`` holds the
question's videos, whole, as ``{bytes, path}``: reading a row decodes none of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features, Image, List, Value

from pipelines.images import ImageStore
from pipelines.records import ImageRef, Sample, Trajectory, VideoRef, to_row
from pipelines.splits import SPLITS, Split

R = TypeVar("R")
_text, _int, _float = Value("string"), Value("int64"), Value("float64")
IMAGE_REF = {
    "sha256": _text,
    "width": _int,
    "height": _int,
    "mode": _text,
    "format": _text,
    "parent": _text,
    "made_by": _text,
}
VIDEO_REF = {"sha256": _text, "format": _text, "width": _int, "height": _int, "n_frames": _int, "fps": _float}
_observation = {
    "status": _text,
    "text": _text,
    "images": List(Value("int32")),
    "error": _text,
    "edits": List({"kind": _text, "before": _text, "after": _text}),
}
FEATURES = Features(
    {
        "trajectory_id": _text,
        "sample_id": _text,
        "family": _text,
        "protocol": _text,
        "source": _text,
        "source_row": _text,
        "license": _text,
        "category": _text,
        "question": _text,
        "choices": List(_text),
        "images": List(Image()),
        "n_question_images": Value("int32"),
        "rounds": List({"thought": _text, "code": _text, "observation": _observation}),
        "final_thought": _text,
        "answer": _text,
        "loss_policy": _text,
        "mode": _text,
        "checks": List(
            {
                "name": _text,
                "passed": Value("bool"),
                "score": _float,
                "detail": _text,
                "reason": _text,
                "version": _int,
                "n_trials": _int,
            }
        ),
        "usage": {"calls": _int, "prompt_tokens": _int, "completion_tokens": _int, "cost_usd": _float},
        "provenance": {
            "policy": _text,
            "model": _text,
            "revision": _text,
            "sampling": _text,
            "prompt_digest": _text,
            "sandbox_digest": _text,
            "seed": _int,
            "code_version": _text,
        },
        "image_refs": List(IMAGE_REF),
        "videos": List({"bytes": Value("binary"), "path": _text}),
        "video_refs": List(VIDEO_REF),
    }
)
"""The columns of a shipped dataset of trajectories, as ``datasets`` features."""

ROWS_PER_GROUP = 64
"""Rows of one parquet row group: with embedded images, what a reader holds in memory at once."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A written dataset: where it is and how much."""

    folder: Path
    n_rows: int
    n_images: int
    n_bytes: int


def write_dataset(
    folder: Path, pairs: Iterable[tuple[Sample, Trajectory]], *, store: ImageStore, split: str = "train"
) -> Shipped:
    """Writes trajectories with their samples as the parquet file of a split; rows keep the order of ``pairs``."""
    return write_split(folder, (_row(sample, trajectory, store) for sample, trajectory in pairs), FEATURES, split=split)


def write_split(folder: Path, rows: Iterable[dict[str, Any]], features: Features, *, split: str) -> Shipped:
    """Writes ``rows`` as the parquet file of a split, which is replaced whole; streams by row group."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}-00000-of-00001.parquet"
    for orphan in folder.glob(f".{path.name}.*"):
        orphan.unlink(missing_ok=True)  # left by a process that was killed while it wrote
    part = folder / f".{path.name}.{uuid4().hex}"
    schema = _arrow_schema(features)
    n_rows = n_images = 0
    with pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for batch in _batches(iter(rows), ROWS_PER_GROUP):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            n_rows += len(batch)
            n_images += sum(len(row["images"]) for row in batch)
    os.replace(part, path)
    return Shipped(folder, n_rows, n_images, path.stat().st_size)


def write_splits(
    folder: Path, rows: Sequence[R], write: Callable[[Sequence[R], str], Shipped], *, split_of: Callable[[R], Split]
) -> tuple[Shipped, Mapping[str, int]]:
    """A file per split that has rows, by ``write``; the training split's is there without rows, too.

    What is left of a split that has none any more goes. Returns the sums, and the rows by split.
    """
    by_split: dict[str, list[R]] = {split: [row for row in rows if split_of(row) == split] for split in SPLITS}
    parts = [write(found, split) for split, found in by_split.items() if found or split == "train"]
    for path in folder.glob("*.parquet"):
        if not by_split.get(path.name.split("-")[0]) and not path.name.startswith("train-"):
            path.unlink()
    sums = (sum(getattr(part, name) for part in parts) for name in ("n_rows", "n_images", "n_bytes"))
    return Shipped(folder, *sums), {split: len(found) for split, found in by_split.items()}


def _row(sample: Sample, trajectory: Trajectory, store: ImageStore) -> dict[str, Any]:
    shown = trajectory.shown_images
    position = len(trajectory.images)
    row = to_row(trajectory)
    for turn in row["rounds"]:
        n = len(turn["observation"]["images"])
        turn["observation"]["images"] = list(range(position, position + n))
        position += n
    row["images"] = embedded(shown, store)
    row["image_refs"] = [to_row(image) for image in shown]
    row["n_question_images"] = len(trajectory.images)
    row["videos"] = embedded(sample.videos, store)
    row["video_refs"] = [to_row(video) for video in sample.videos]
    for name in ("source", "source_row", "license", "category", "question", "choices"):
        row[name] = getattr(sample, name)
    return row


def embedded(files: Iterable[ImageRef | VideoRef], store: ImageStore) -> list[dict[str, Any]]:
    """Images or videos as ``datasets`` embeds them."""
    return [{"bytes": store.read(file), "path": _file_name(file)} for file in files]


def _file_name(file: ImageRef | VideoRef) -> str:
    return f"{file.sha256[:16]}.{file.format.lower()}"


def _arrow_schema(features: Features) -> pa.Schema:
    # the same key that `datasets` writes: without it the image structs would be read as plain structs
    info = {"info": {"features": features.to_dict()}}
    return features.arrow_schema.with_metadata({"huggingface": json.dumps(info)})


def _batches(rows: Iterator[dict[str, Any]], size: int) -> Iterator[Sequence[dict[str, Any]]]:
    while batch := list(islice(rows, size)):
        yield batch
