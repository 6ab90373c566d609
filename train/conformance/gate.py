"""Goes through all rows of a dataset in batches and keeps the verdicts, by the digest of all that they depend on.

A restart, and every process but the first, find the verdicts there and check nothing again. The tokens of every row are
those of the trainer's own collator, with images of which nothing but the size is read; some rows are read with their
pixels, too, and must come out the same. Many rows are shared among processes.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image

from pipelines.digest import digest
from pipelines.layouts.turns import Row
from train.checkpoints import folder_digest
from train.conformance.report import Conformance, Writer, kept
from train.conformance.rows import Indexed, judge
from train.conformance.sizes import without_pixels
from train.conformance.verdicts import Verdict
from train.faults import TrainFault
from train.reading import Reader
from train.rows import count_rows, rows_with_images

VERSION = 1
"""Of the checks: verdicts of another version do not count."""
BATCH = 16
READ_WHOLE = 16
"""Rows that are read with their pixels as well."""
WORTH_A_PROCESS, MOST_PROCESSES = 10_000, 16
"""Rows for which it pays to start one more process, which loads the libraries first; and how many at the most."""
Progress = Callable[[int, int], None]
"""Is told how many rows are done, of how many."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What is checked against what. ``folders`` are datasets; ``reader`` was opened from ``model``."""

    folders: Sequence[Path]
    model: Path
    reader: Reader
    max_tokens: int

    @property
    def key(self) -> str:
        """The digest of all that the verdicts depend on."""
        sizes = self.reader.processor.image_processor.size
        return digest(
            [
                VERSION,
                [folder_digest(folder, "*.parquet") for folder in self.folders],
                [folder_digest(self.model, pattern) for pattern in ("*.json", "*.txt", "*.jinja")],
                [self.reader.template, self.reader.layout, self.reader.train_observations],
                [sizes["shortest_edge"], sizes["longest_edge"], self.max_tokens],
                [version("transformers"), version("trl")],
            ]
        )


def examine(gate: Gate, reports: Path, *, writes: bool = True, progress: Progress | None = None) -> Conformance:
    """The verdicts on all rows, from ``reports`` if they are there. ``writes`` is true for the first process only.

    Raises ``TrainFault`` when the rows have other tokens with their pixels than without: then the gate is wrong.
    """
    key = gate.key
    path = reports / f"{key[:16]}.parquet"
    found = kept(path, key)
    while found is None:
        if writes:
            _write(gate, path, key, progress or (lambda done, of: None))
        else:
            time.sleep(1.0)  # the first process is at it; when it fails, whoever launched ends the others
        found = kept(path, key)
    return found


def _write(gate: Gate, path: Path, key: str, progress: Progress) -> None:
    n_rows, writer = count_rows(*gate.folders), Writer(path, key)
    try:
        done = 0
        for verdicts in _verdicts(gate, n_rows):
            writer.write(verdicts)
            progress(done := done + len(verdicts), n_rows)
    except BaseException:
        writer.discard()
        raise
    writer.publish()


def _verdicts(gate: Gate, n_rows: int) -> Iterator[list[Verdict]]:
    step = -(-n_rows // READ_WHOLE)
    rows = (Indexed(*found) for found in enumerate(rows_with_images(*gate.folders)))
    batches = iter(lambda: list(islice(rows, BATCH)), [])
    n_processes = min(n_rows // WORTH_A_PROCESS, os.cpu_count() or 1, MOST_PROCESSES)
    judgement = Judgement(gate.reader, gate.max_tokens, step)
    if n_processes < 2:
        yield from map(judgement, batches)
    else:
        yield from _shared(judgement, batches, n_processes)


class Judgement:
    """Judges a batch of rows; every ``step``th row is read with its pixels as well."""

    def __init__(self, reader: Reader, max_tokens: int, step: int) -> None:
        self._reader, self._sizes = reader, without_pixels(reader)
        self._max_tokens, self._step = max_tokens, step

    def __reduce__(self) -> Any:
        return Judgement, (self._reader, self._max_tokens, self._step)

    def __call__(self, batch: Sequence[Indexed]) -> list[Verdict]:
        """A verdict on every row."""
        verdicts = judge(batch, self._sizes, max_tokens=self._max_tokens)
        for found, verdict in zip(batch, verdicts, strict=True):
            if found.place % self._step == 0 and verdict.reason is None:
                self._check_whole(found.row)
        return verdicts

    def _check_whole(self, row: Row) -> None:
        """The row has the same tokens, labels and number of patches when its pixels are read."""
        pictures = [Image.open(io.BytesIO(image["bytes"])) for image in row["images"] or []]
        shown = {**row, "images": pictures}
        whole, light = self._reader.read([shown]), self._sizes.read([shown])
        same = all(whole[name].equal(light[name]) for name in ("input_ids", "labels"))
        if not same or (pictures and len(whole["pixel_values"]) != int(light["image_grid_thw"].prod(dim=1).sum())):
            raise TrainFault(
                f"row {row['trajectory_id']} is read otherwise with its pixels than by the sizes of its images: "
                "this version of transformers does not fit the gate; use the one that pyproject.toml names"
            )


_judgement: Judgement | None = None
"""Of a process that judges for another."""


def _shared(judgement: Judgement, batches: Iterator[list[Indexed]], n_processes: int) -> Iterator[list[Verdict]]:
    """Verdicts in the order of the batches, of which a few wait for every process."""
    spawn = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
    with ProcessPoolExecutor(n_processes, spawn, initializer=_begin, initargs=(judgement,)) as pool:
        waiting: deque[Future[list[Verdict]]] = deque()
        for batch in batches:
            waiting.append(pool.submit(_judge, batch))
            if len(waiting) > 4 * n_processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _begin(judgement: Judgement) -> None:
    global _judgement
    _judgement = judgement


def _judge(batch: list[Indexed]) -> list[Verdict]:
    if _judgement is None:
        raise RuntimeError("a process judges before it was told how")
    return _judgement(batch)
