"""Shipped rows as parquet: one file per split with the images' bytes embedded, readable with nothing of Darkroom.

``<folder>/train-00000-of-00001.parquet``, ``<folder>/validation-00000-of-00001.parquet``; columns: those of
``features.py``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.models.tasks import question_text
from pipelines.publishing.dataset_reader import Kind, features_of
from pipelines.records import ImageRef, RLRow, Sample, Trajectory, VideoRef, to_row
from pipelines.rl.visual_search import asks_visual_search
from pipelines.selection.splits import SPLITS, Split
from pipelines.storage.atomic_write import whole_file
from pipelines.storage.images import ImageStore

R = TypeVar("R")
SAMPLE = ("source", "source_row", "license", "category", "question", "choices")
"""Columns that a sample's fields fill as they are, in both kinds of datasets."""
ROWS_PER_GROUP = 64
"""Rows of one parquet row group: with embedded images, what a reader holds in memory at once."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A written dataset: where it is and how much."""

    folder: Path
    n_rows: int
    n_images: int
    n_bytes: int


def write_trajectories(
    folder: Path, pairs: Iterable[tuple[Sample, Trajectory]], *, store: ImageStore, split: str = "train"
) -> Shipped:
    """Writes trajectories with their samples as the parquet file of a split, in their order."""
    rows = (trajectory_row(sample, trajectory, store) for sample, trajectory in pairs)
    return write_split(folder, rows, "trajectories", split=split)


def write_prompts(
    folder: Path,
    rows: Iterable[RLRow],
    *,
    store: ImageStore,
    split: str,
    visual_search: Mapping[str, bool] = MappingProxyType({}),
) -> Shipped:
    """Writes RL rows as the parquet file of a split, in their order.

    ``visual_search``: by source, whether its questions are; for rows without boxes.
    """
    return write_split(folder, (prompt_row(row, store, visual_search) for row in rows), "prompts", split=split)


def write_split(folder: Path, rows: Iterable[dict[str, Any]], kind: Kind, *, split: str) -> Shipped:
    """Writes ``rows`` as the parquet file of a split, which is replaced whole; streams by row group."""
    from pipelines.publishing.features import arrow_schema  # `datasets` takes a second

    path = folder / f"{split}-00000-of-00001.parquet"
    for orphan in folder.glob(f".{path.name}.*"):
        orphan.unlink(missing_ok=True)  # left by a process that was killed while it wrote
    schema = arrow_schema(features_of(kind))
    n_rows = n_images = 0
    with whole_file(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        remaining = iter(rows)
        while batch := list(islice(remaining, ROWS_PER_GROUP)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            n_rows += len(batch)
            n_images += sum(len(row["images"]) for row in batch)
    return Shipped(folder, n_rows, n_images, path.stat().st_size)


def write_splits(
    folder: Path, rows: Sequence[R], write: Callable[[Sequence[R], Split], Shipped], *, split_of: Callable[[R], Split]
) -> tuple[Shipped, Mapping[str, int]]:
    """A file per split that has rows, by ``write``; the training split's is there without rows, too.

    Files of splits without rows are removed. Returns the sums, and the rows by split.
    """
    by_split = {split: [row for row in rows if split_of(row) == split] for split in SPLITS}
    parts = [write(members, split) for split, members in by_split.items() if members or split == "train"]
    n_by_split = {str(split): len(members) for split, members in by_split.items()}
    for path in folder.glob("*.parquet"):
        if not n_by_split.get(path.name.split("-")[0]) and not path.name.startswith("train-"):
            path.unlink()
    sums = (sum(getattr(part, name) for part in parts) for name in ("n_rows", "n_images", "n_bytes"))
    return Shipped(folder, *sums), n_by_split


def trajectory_row(sample: Sample, trajectory: Trajectory, store: ImageStore) -> dict[str, Any]:
    """The columns of trajectories; an observation's images are indexes into the row's."""
    images = trajectory.shown_images
    position = len(trajectory.images)
    row = to_row(trajectory)
    for turn in row["rounds"]:
        n = len(turn["observation"]["images"])
        turn["observation"]["images"] = list(range(position, position + n))
        position += n
    return {
        **row,
        **_fields(sample, *SAMPLE),
        **_media(images, sample, store),
        "n_question_images": len(trajectory.images),
    }


def prompt_row(
    row: RLRow, store: ImageStore, visual_search: Mapping[str, bool] = MappingProxyType({})
) -> dict[str, Any]:
    """The columns of prompts."""
    sample = row.sample
    return {
        **_fields(sample, "sample_id", "answer", *SAMPLE),
        "prompt": question_text(sample),
        **_fields(row, "difficulty", "origin", "grader"),
        **_measurements(row),
        "visual_search": asks_visual_search(sample, visual_search.get(sample.source)),
        "boxes": to_row(sample.truth.boxes),
        **_media(sample.images, sample, store),
    }


def _fields(record: Any, *names: str) -> dict[str, Any]:
    return {name: to_row(getattr(record, name)) for name in names}


def _measurements(row: RLRow) -> dict[str, Any]:
    """What the stages measured; the columns of a stage that did not run are absent, and so null."""
    columns: dict[str, Any] = {}
    if row.pass_rate is not None:
        votes = row.pass_rate.votes
        columns |= {"pass_rate": votes.share, "n_right": votes.n_yes, "n_answers": votes.n, "student": votes.judge}
        columns["never_solved"] = row.pass_rate.never_solved
    if row.necessity is not None:
        columns |= {
            "necessity_prior": row.necessity.prior,
            "accuracy_forced": row.necessity.forced.share,
            "accuracy_forbidden": row.necessity.forbidden.share,
            "necessity_model": row.necessity.forced.judge,
        }
    if (label := row.suitability) is not None:
        columns |= {
            "suitable": label.suitable,
            "suitability_majority": label.majority,
            "suitability_yes": label.n_yes,
            "suitability_no": label.n_no,
        }
    return columns


def _media(images: Sequence[ImageRef], sample: Sample, store: ImageStore) -> dict[str, Any]:
    return {
        "images": [_embedded(image, store) for image in images],
        "image_refs": to_row(images),
        "videos": [_embedded(video, store) for video in sample.videos],
        "video_refs": to_row(sample.videos),
    }


def _embedded(file: ImageRef | VideoRef, store: ImageStore) -> dict[str, Any]:
    """An image or a video as ``datasets`` embeds it."""
    return {"bytes": store.read(file), "path": f"{file.sha256[:16]}.{file.format.lower()}"}
