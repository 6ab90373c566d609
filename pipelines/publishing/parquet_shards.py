"""Shipped rows as parquet shards with the images' bytes embedded, readable with nothing of Darkroom.

``<folder>/train-00000-of-00003.parquet`` and so on, ``<folder>/validation-00000-of-00001.parquet``; columns: those of
``features.py``. Equal rows give equal files: a shard ends before the row group with which it would exceed its size, so
rows that are appended change the last shards only.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from darkroom.pipelines.models.tasks import question_text
from darkroom.pipelines.publishing.dataset_reader import KEYS, SAMPLE, Kind, split_of
from darkroom.pipelines.publishing.manifest import RowDigest, row_digest
from darkroom.pipelines.records import ImageRef, RLRow, Sample, Trajectory, VideoRef, to_row
from darkroom.pipelines.records.samples import right_answers
from darkroom.pipelines.rl.candidates import asks_visual_search
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.store_paths import StorePath

SHARD_BYTES = 500_000_000
"""Of a shard's rows before compression (images hardly compress): what ``datasets`` and the hub write."""
ROWS_PER_GROUP, GROUP_BYTES = 1_000, 32_000_000
"""A parquet row group ends with so many rows, or bytes of images and videos: what writer and reader hold in memory. The
hub's viewer reads at most 300 MB for the 100 rows that it shows (huggingface/dataset-viewer#1773)."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A written dataset: where it is and how much."""

    folder: StorePath
    n_rows: int
    n_images: int
    n_bytes: int


class ShardWriter:
    """Writes the shards of one split, row group by row group. A context manager: leaving it gives them their names. The
    split's files are replaced then; until then, and after an error, they are what they were."""

    def __init__(self, folder: Path, kind: Kind, split: str, *, shard_bytes: int = SHARD_BYTES) -> None:
        self._folder, self._kind, self._split = folder, kind, split
        self._shard_bytes, self._group_bytes = shard_bytes, min(shard_bytes, GROUP_BYTES)
        self._waiting: list[dict[str, Any]] = []
        self._n_waiting_bytes = self._n_shard_bytes = 0
        self._parts: list[Path] = []
        self.n_rows = self.n_images = self.n_bytes = 0
        self.digests: list[RowDigest] = []

    def __enter__(self) -> Self:
        from darkroom.pipelines.publishing.features import arrow_schema, features_of  # `datasets` takes a second

        self._schema = arrow_schema(features_of(self._kind))
        self._folder.mkdir(parents=True, exist_ok=True)
        for orphan in self._folder.glob(f".{self._split}-*"):
            orphan.unlink(missing_ok=True)  # left by a process that was killed while it wrote
        self._begin_shard()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if kind is None:
                self._flush()
            self._writer.close()
            if kind is None:
                self._replace_files()
        finally:
            for part in self._parts:
                part.unlink(missing_ok=True)

    def write(self, row: dict[str, Any]) -> None:
        """One row, with the columns of its kind."""
        self._waiting.append(row)
        self._n_waiting_bytes += sum(len(media["bytes"]) for name in ("images", "videos") for media in row[name])
        self.n_rows += 1
        self.n_images += len(row["images"])
        if len(self._waiting) == ROWS_PER_GROUP or self._n_waiting_bytes >= self._group_bytes:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        group = pa.Table.from_pylist(self._waiting, schema=self._schema)
        self._waiting, self._n_waiting_bytes = [], 0
        if self._n_shard_bytes and self._n_shard_bytes + group.nbytes > self._shard_bytes:
            self._writer.close()
            self._begin_shard()
        self._writer.write_table(group)
        self.digests += [(row[KEYS[self._kind]], row_digest(row)) for row in group.to_pylist()]
        self._n_shard_bytes += group.nbytes

    def _begin_shard(self) -> None:
        part = self._folder / f".{self._split}-{len(self._parts):05}.{uuid4().hex}"
        self._parts.append(part)
        self._writer = pq.ParquetWriter(part, self._schema, compression="zstd", write_page_index=True)
        self._n_shard_bytes = 0

    def _replace_files(self) -> None:
        """Names the shards; those of an earlier, larger version go first."""
        n_shards = len(self._parts)
        paths = [self._folder / f"{self._split}-{n:05}-of-{n_shards:05}.parquet" for n in range(n_shards)]
        for path in self._folder.glob("[!.]*.parquet"):
            if split_of(path) == self._split and path not in paths:
                path.unlink()
        for part, path in zip(self._parts, paths, strict=True):
            self.n_bytes += part.stat().st_size
            os.replace(part, path)


def write_trajectories(
    folder: Path,
    pairs: Iterable[tuple[Sample, Trajectory]],
    *,
    store: ImageStore,
    split: str = "train",
    shard_bytes: int = SHARD_BYTES,
) -> Shipped:
    """Writes trajectories with their samples as the shards of one split, in their order."""
    with ShardWriter(folder, "trajectories", split, shard_bytes=shard_bytes) as writer:
        for sample, trajectory in pairs:
            writer.write(trajectory_row(sample, trajectory, store))
    return Shipped(folder, writer.n_rows, writer.n_images, writer.n_bytes)


def trajectory_row(sample: Sample, trajectory: Trajectory, store: ImageStore) -> dict[str, Any]:
    """The columns of trajectories; an observation's images are indexes into the row's."""
    columns, position = to_row(trajectory), len(trajectory.images)
    for turn in columns["rounds"]:
        n = len(turn["observation"]["images"])
        turn["observation"]["images"] = list(range(position, position + n))
        position += n
    return {
        **columns,
        **record_columns(sample, *SAMPLE),
        **media_columns(trajectory.shown_images, sample, store),
        "n_question_images": len(trajectory.images),
    }


def prompt_row(
    row: RLRow, store: ImageStore, visual_search: Mapping[str, bool] = MappingProxyType({})
) -> dict[str, Any]:
    """The columns of prompts; ``visual_search`` says by source whether its questions are, for rows without boxes."""
    sample = row.sample
    return {
        **record_columns(sample, "sample_id", "answer", *SAMPLE),
        "prompt": question_text(sample),
        **record_columns(row, "difficulty", "origin", "grader"),
        "accepted": list(right_answers(sample)[1:]) or None,
        **_measurements(row),
        "visual_search": asks_visual_search(sample, visual_search.get(sample.source)),
        "boxes": to_row(sample.truth.boxes),
        **media_columns(sample.images, sample, store),
    }


def record_columns(record: Any, *names: str) -> dict[str, Any]:
    return {name: to_row(getattr(record, name)) for name in names}


def _measurements(row: RLRow) -> dict[str, Any]:
    """Columns of measurements; those of a stage that did not run are absent, and so null."""
    columns: dict[str, Any] = {}
    if row.pass_rate is not None:
        votes = row.pass_rate.votes
        columns |= {"pass_rate": votes.share, "n_right": votes.n_yes, "n_answers": votes.n, "student": votes.judge}
        columns["never_solved"] = row.pass_rate.never_solved
    if (necessity := row.necessity) is not None:
        columns |= {"necessity_prior": necessity.prior, "necessity_model": necessity.forced.judge}
        columns |= {"accuracy_forced": necessity.forced.share, "accuracy_forbidden": necessity.forbidden.share}
    if (label := row.suitability) is not None:
        columns |= {"suitable": label.suitable, "suitability_majority": label.majority}
        columns |= {"suitability_yes": label.n_yes, "suitability_no": label.n_no}
    return columns


def media_columns(images: Sequence[ImageRef], sample: Sample, store: ImageStore) -> dict[str, Any]:
    return {
        "images": [embedded(image, store) for image in images],
        "image_refs": to_row(images),
        "videos": [embedded(video, store) for video in sample.videos],
        "video_refs": to_row(sample.videos),
    }


def embedded(file: ImageRef | VideoRef, store: ImageStore) -> dict[str, Any]:
    return {"bytes": store.read(file), "path": f"{file.sha256[:16]}.{file.format.lower()}"}
