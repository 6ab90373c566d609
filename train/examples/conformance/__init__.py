"""The gate before training: every row is checked against the tokens that the trainer reads, and gets a verdict.

``examine`` goes through all rows of a dataset in batches, ``rows.py`` judges them, ``report.py`` stores and words the
verdicts, keyed by the digest of everything they depend on: a restart, and every process but the first, read the stored
ones. The tokens of a row are those of the trainer's own collator, from the sizes of its images alone: scaling pixels
takes most of a processor's time and changes no token. A sample of the rows is read with pixels, too, and must give the
same tokens. Many rows are divided among processes.
"""

import copy
import io
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image

from darkroom.pipelines.publishing.dataset_reader import in_order, read_files
from darkroom.pipelines.publishing.layouts.turns import Row
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.stage_runs import Progress as Progress
from darkroom.train.examples.conformance.report import (
    Conformance as Conformance,
    Misfit as Misfit,
    RowVerdict as RowVerdict,
    encoding_report as encoding_report,
    explanation as explanation,
    read_report,
    report_writer,
    summary as summary,
)
from darkroom.train.examples.conformance.rows import IndexedRow, judge
from darkroom.train.examples.datasets import Part, count_rows, dataset_files
from darkroom.train.examples.encoding import RowReader
from darkroom.train.runs import TrainError
from darkroom.train.runs.checkpoints import folder_digest


class SizesOnly:
    """Stands in for a Qwen-VL image processor: the grids have the right number of patches, and no pixels."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, images: Any, **_: Any) -> dict[str, Any]:
        """Raises ``ValueError`` for an image that cannot be scaled (it is 200 times as long as it is wide)."""
        import torch
        from transformers.image_utils import make_flat_list_of_images

        count = self._processor.get_number_of_image_patches
        flat: Any = make_flat_list_of_images(images)
        patches = [count(image.height, image.width) for image in flat]
        return {"pixel_values": torch.empty(0), "image_grid_thw": torch.tensor([[1, 1, n] for n in patches])}


def without_pixels(reader: RowReader) -> RowReader:
    processor = copy.copy(reader.processor)
    processor.image_processor = SizesOnly(reader.processor.image_processor)
    return replace(reader, processor=processor)


VERSION = 1
"""Version of the checks: verdicts of another one do not count."""
BATCH = 16
READ_WHOLE = 16
"""Rows that are read with their pixels as well."""
WORTH_A_PROCESS, MOST_PROCESSES = 10_000, 16
"""Rows for which it pays to start one more process, which loads the libraries first; and how many at the most."""


@dataclass(frozen=True, slots=True)
class ConformanceGate:
    """The rows of ``folders`` and the reader that they are checked against, opened from ``model``."""

    folders: Sequence[Path]
    model: Path
    reader: RowReader
    max_tokens: int
    part: Part = "train"

    @property
    def key(self) -> str:
        sizes = self.reader.processor.image_processor.size
        # those that are not set are left out: reports of earlier versions go on to count
        part = None if self.part == "train" else self.part
        ablations = filter(None, (self.reader.loss_policy, self.reader.without_comments, part))
        return digest(
            [
                VERSION,
                [folder_digest(folder, "*.parquet") for folder in self.folders],
                [folder_digest(self.model, pattern) for pattern in ("*.json", "*.txt", "*.jinja")],
                [self.reader.template, self.reader.layout, self.reader.train_observations, *ablations],
                [sizes["shortest_edge"], sizes["longest_edge"], self.max_tokens],
                [version("transformers"), version("trl")],
            ]
        )


def examine(
    gate: ConformanceGate, reports: Path, *, writes: bool = True, progress: Progress | None = None
) -> Conformance:
    """Check all rows, or read their verdicts from ``reports`` if they are there. ``writes`` is true for the first
    process only. Raises ``TrainError`` when the gate is wrong: rows have other tokens with pixels than without."""
    key = gate.key
    path = reports / f"{key[:16]}.parquet"
    while (conformance := read_report(path, key)) is None:
        if writes:
            _write(gate, path, key, progress)
        else:
            time.sleep(1.0)  # the first process is at it; when it fails, whoever launched ends the others
    return conformance


def _write(gate: ConformanceGate, path: Path, key: str, progress: Progress | None) -> None:
    n_rows, n_checked = count_rows(*gate.folders, part=gate.part), 0
    with report_writer(path, key) as write:
        for verdicts in _verdicts(gate, n_rows):
            write(verdicts)
            n_checked += len(verdicts)
            if progress is not None:
                progress(n_checked, n_rows)


def _verdicts(gate: ConformanceGate, n_rows: int) -> Iterator[list[RowVerdict]]:
    step = -(-n_rows // READ_WHOLE)
    files = dataset_files(*gate.folders, part=gate.part)
    rows = (IndexedRow(*entry) for entry in enumerate(read_files(files, without=("videos",))))
    batches = iter(lambda: list(islice(rows, BATCH)), [])
    n_processes = min(n_rows // WORTH_A_PROCESS, os.cpu_count() or 1, MOST_PROCESSES)
    judgement = BatchJudge(gate.reader, gate.max_tokens, step)
    if n_processes < 2:
        yield from map(judgement, batches)
    else:
        yield from _shared(judgement, batches, n_processes)


@dataclass(frozen=True)
class BatchJudge:
    """Judges a batch of rows; every ``step``th row is read with its pixels as well."""

    reader: RowReader
    max_tokens: int
    step: int

    @cached_property
    def sizes(self) -> RowReader:
        """Made in the process that judges."""
        return without_pixels(self.reader)

    def __call__(self, batch: Sequence[IndexedRow]) -> list[RowVerdict]:
        verdicts = judge(batch, self.sizes, max_tokens=self.max_tokens)
        for entry, verdict in zip(batch, verdicts, strict=True):
            if entry.place % self.step == 0 and verdict.reason is None:
                self._check_whole(entry.row)
        return verdicts

    def _check_whole(self, row: Row) -> None:
        """Raise ``TrainError`` unless the row has the same tokens, labels and number of patches with its pixels."""
        images = [Image.open(io.BytesIO(image["bytes"])) for image in row["images"] or []]
        opened = {**row, "images": images}
        whole, light = self.reader.read([opened]), self.sizes.read([opened])
        same = all(whole[name].equal(light[name]) for name in ("input_ids", "labels"))
        if not same or (images and len(whole["pixel_values"]) != int(light["image_grid_thw"].prod(dim=1).sum())):
            problem = f"row {row['trajectory_id']} is read otherwise with its pixels than by the sizes of its images"
            mend = "this version of transformers does not fit the gate; use the one that pyproject.toml names"
            raise TrainError(f"{problem}: {mend}")


_judgement: BatchJudge | None = None
"""The judge in a process that judges for another."""


def _shared(judgement: BatchJudge, batches: Iterator[list[IndexedRow]], n_processes: int) -> Iterator[list[RowVerdict]]:
    """Verdicts in the order of the batches, of which a few wait for every process."""
    spawn = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(n_processes, spawn, initializer=_begin, initargs=(judgement,)) as pool:
        yield from in_order(lambda batch: pool.submit(_judge, batch), batches, most=4 * n_processes)


def _begin(judgement: BatchJudge) -> None:
    global _judgement
    _judgement = judgement


def _judge(batch: list[IndexedRow]) -> list[RowVerdict]:
    assert _judgement is not None, "_begin runs first in a worker process"
    return _judgement(batch)
