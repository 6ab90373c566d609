"""Writing a layout's files: JSON lines or parquet by group, images once by content, rejects beside them.

Equal rows give equal bytes. In JSON lines, rows with images come before those without: ``datasets`` takes the type of a
column from the first rows, and would take lists that are all empty for lists of nothing.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.layouts.base import KEYS, Layout, Rendered
from pipelines.layouts.faults import Unrenderable

REJECTS = "rejects.jsonl"
ROWS_PER_GROUP = 64
_WITHOUT_IMAGES = ".without_images"


class Writer:
    """Writes the rows of one layout into an empty folder. A context manager: leaving it completes the files."""

    def __init__(self, folder: Path, layout: Layout, split: str) -> None:
        self._folder, self._layout, self._split = folder, layout, split
        self._open = ExitStack()
        self._lines: dict[str, IO[str]] = {}
        self._parquet: dict[str, pq.ParquetWriter] = {}
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._images: set[str] = set()
        self.n_rows: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.graders: Counter[str] = Counter()
        self.n_images = 0

    def __enter__(self) -> Self:
        self._rejects = self._open.enter_context((self._folder / REJECTS).open("w"))
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            for name in self._parquet:
                self._flush(name)
        self._open.close()
        for part in sorted(self._folder.glob(f"*{_WITHOUT_IMAGES}")):
            with part.open("rb") as rest, part.with_suffix("").open("ab") as whole:
                shutil.copyfileobj(rest, whole)
            part.unlink()

    def image(self, path: str, data: bytes) -> None:
        """One image file; the same path again writes nothing, since its name is its content's digest."""
        if path not in self._images:
            self._images.add(path)
            target = self._folder / path
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)

    def row(self, rendered: Rendered) -> None:
        """One record, into the file of its group."""
        stem = f"{self._split}_{rendered.group}" if rendered.group else self._split
        images = rendered.record.get("images", ())
        if self._layout.schema is None:
            name = f"{stem}.jsonl"
            self._line(name if images else f"{name}{_WITHOUT_IMAGES}", rendered.record)
        else:
            name = f"{stem}.parquet"
            self._parquet_row(name, rendered.record, self._layout.schema)
        self.n_rows[name] += 1
        if rendered.grader:
            self.graders[rendered.grader] += 1
        self.n_images += len(images)

    def reject(self, row_id: str, fault: Unrenderable) -> None:
        """One row that was taken out."""
        self.reasons[fault.reason.value] += 1
        line = {KEYS[self._layout.of]: row_id, "reason": fault.reason.value, "evidence": fault.evidence}
        self._rejects.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _line(self, name: str, record: dict[str, Any]) -> None:
        if name not in self._lines:
            self._lines[name] = self._open.enter_context((self._folder / name).open("w"))
        self._lines[name].write(json.dumps(record, ensure_ascii=False) + "\n")

    def _parquet_row(self, name: str, record: dict[str, Any], schema: pa.Schema) -> None:
        if name not in self._parquet:
            writer = pq.ParquetWriter(self._folder / name, schema, compression="zstd")
            self._parquet[name] = self._open.enter_context(writer)
            self._waiting[name] = []
        self._waiting[name].append(record)
        if len(self._waiting[name]) == ROWS_PER_GROUP:
            self._flush(name)

    def _flush(self, name: str) -> None:
        rows, self._waiting[name] = self._waiting[name], []
        if rows:
            self._parquet[name].write_table(pa.Table.from_pylist(rows, schema=self._layout.schema))
