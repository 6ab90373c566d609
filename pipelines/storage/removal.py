"""Removal for good: take-downs of images and rows, tables of removed sources, files that nothing refers to.

A take-down is a line of ``<home>/removed.jsonl``: intake rejects from then on what it names (``removed``). Samples that
are there become such rejects at once; the tables that were made of their shards are deleted, and the next build makes
them again, of what is left, from the ledger: nothing is asked for twice. Datasets follow when they are built again.

Files are found by the digests in whatever may refer to them: every text in tables, datasets, databases and other files
of the workspace. What the ledger's requests name is no reference: an input that comes back is stored again.
"""

import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import pyarrow.parquet as pq

from darkroom.pipelines.records import ImageRef, Reject, Sample, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.store_paths import StorePath, children, content, opened, remove_file
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_WITHOUT = re.compile(
    r"images|image_cache|environments|checkpoints|dagster|benchmarks|same_images|removed\.jsonl|ledger\.sqlite.*"
)
"""Folders and files that name no stored file, or none that they need."""
_AT_ONCE = 1 << 24
SAMPLES = ("samples",)


@dataclass(frozen=True, slots=True)
class TakeDown:
    """What may not be used: an image or video by its digest, or a source's row; ``at``: when it was removed, UTC."""

    digest: str = ""
    source: str = ""
    row: str = ""
    at: str = ""

    @classmethod
    def of(cls, name: str) -> Self:
        """Read ``<digest>`` or ``<source>:<row>``. Raises ``ValueError``."""
        if _DIGEST.fullmatch(name):
            return cls(digest=name)
        source, _, row = name.partition(":")
        if not (source and row):
            raise ValueError(f"{name!r} is no source, no file, no digest of 64 digits and no SOURCE:ROW")
        return cls(source=source, row=row)

    def __str__(self) -> str:
        return self.digest or f"{self.source}:{self.row}"

    @property
    def evidence(self) -> str:
        """Not by its digest, which would keep the file."""
        return f"the {'image or video' if self.digest else 'row'} was removed on {self.at}"

    def names(self, sample: Sample) -> bool:
        """Return whether the sample is the row, or holds the image or video, or one that was made of it."""
        files: list[ImageRef | VideoRef] = [*sample.images, *sample.videos]
        digests = (digest for file in files for digest in (file.sha256, file.parent))
        return self.is_about(sample.source, sample.source_row, digests)

    def is_about(self, source: str, row: str, digests: Iterable[str | None]) -> bool:
        """Return whether a row with such images and videos is meant."""
        return self.digest in digests if self.digest else (self.source, self.row) == (source, row)


def taken_down(home: StorePath) -> list[TakeDown]:
    """The workspace's list, oldest first."""
    lines = (content(home / "removed.jsonl") or b"").decode().splitlines()
    return [TakeDown(**json.loads(line)) for line in lines]


def take_down(workspace: Workspace, new: Sequence[TakeDown]) -> None:
    """Add to the list, then remove the samples that it names, with the tables below them."""
    listed = {str(entry): entry for entry in taken_down(workspace.home)}
    listed |= {str(entry): entry for entry in new if str(entry) not in listed}
    lines = "".join(f"{json.dumps(asdict(entry), sort_keys=True)}\n" for entry in listed.values())
    write_whole(workspace.home / "removed.jsonl", lines)
    for key, by_sample in affected(workspace, new).items():
        _reject_samples(workspace, key, dict(by_sample))
        for table in workspace.tables.all_keys():
            if table.partition == key.partition and table.asset != SAMPLES:
                delete_table(workspace, table)


def affected(workspace: Workspace, new: Sequence[TakeDown]) -> dict[TableKey, list[tuple[str, TakeDown]]]:
    """The tables of samples that hold what is named, each with the samples' ids and the entries that name them."""
    hits: dict[TableKey, list[tuple[str, TakeDown]]] = {}
    for key in workspace.tables.keys(SAMPLES):
        for sample in workspace.tables.stream(key, Sample):
            if entry := next((entry for entry in new if entry.names(sample)), None):
                hits.setdefault(key, []).append((sample.sample_id, entry))
    return hits


def _reject_samples(workspace: Workspace, key: TableKey, by_sample: Mapping[str, TakeDown]) -> None:
    tables, facts = workspace.tables, workspace.tables.facts(key)

    def rejects() -> Iterator[Reject]:
        yield from tables.stream_rejects(key)
        for sample in tables.stream(key, Sample):
            if entry := by_sample.get(sample.sample_id):
                whence = {"source": sample.source, "source_row": sample.source_row, "sample_id": sample.sample_id}
                yield reject(Reason.REMOVED, entry.evidence, stage="samples", row={}, **whence)

    for name, n in (("n_out", -len(by_sample)), ("n_rejected", len(by_sample))):
        facts[name] += n
    facts["reasons"][Reason.REMOVED.value] = facts["reasons"].get(Reason.REMOVED.value, 0) + len(by_sample)
    rows = (sample for sample in tables.stream(key, Sample) if sample.sample_id not in by_sample)
    tables.write(key, Sample, rows, rejects(), inputs=tables.inputs(key) or "", facts=facts)


def tables_of(workspace: Workspace, source: str) -> list[TableKey]:
    """Every table of a source's shards."""
    is_shard = re.compile(rf"{re.escape(source)}-\d{{4,}}")
    return [key for key in workspace.tables.all_keys() if is_shard.fullmatch(key.partition)]


def delete_table(workspace: Workspace, key: TableKey) -> None:
    """Delete a table with its rejects; the table first, which says whose they are."""
    rejects = workspace.tables.rejects_path(key)
    for path in (workspace.tables.path(key), rejects):
        remove_file(path)


def unreferenced(
    workspace: Workspace, *, days: float, runs: bool = False, say: Callable[[str], None] | None = None
) -> dict[str, int]:
    """The stored images and videos, with their bytes, that are older than ``days`` and that nothing refers to.
    ``runs``: recorded runs of code, which can be executed again, are no references."""
    before = time.time() - days * 86_400
    unneeded = {file: n_bytes for file, n_bytes, stored in workspace.images.files() if stored < before}
    for text in _texts(workspace, say):
        for sha256 in _DIGEST.findall(text):
            unneeded.pop(sha256, None)
    for _, text in () if runs else workspace.ledger.results("sandbox"):
        for sha256 in _DIGEST.findall(text):
            unneeded.pop(sha256, None)
    return unneeded


def forget_runs(workspace: Workspace, deleted: Iterable[str]) -> int:
    """Delete recorded runs of code that show a deleted image: they are executed again when they are needed."""
    gone = set(deleted)
    keys = [key for key, text in workspace.ledger.results("sandbox") if not gone.isdisjoint(_DIGEST.findall(text))]
    workspace.ledger.forget(keys)
    return len(keys)


def _texts(workspace: Workspace, say: Callable[[str], None] | None) -> Iterator[str]:
    """Every text in the workspace's files that may name a stored file."""
    roots: list[StorePath] = [workspace.home, *([] if workspace.local == workspace.home else [workspace.local])]
    for folder in (folder for root in roots for folder in children(root)):
        if _WITHOUT.fullmatch(folder.name):
            continue
        if say is not None:
            say(f"reading {folder.name}")
        for path in folder.rglob("*") if folder.is_dir() else (folder,):
            if path.is_file():
                yield from _texts_of(path)


def _texts_of(path: StorePath) -> Iterator[str]:
    if path.suffix == ".parquet":
        with opened(path) as source, pq.ParquetFile(source) as file:
            leaves = (file.schema.column(n) for n in range(len(file.schema)))
            texts = [leaf.path for leaf in leaves if str(leaf.logical_type) == "String"]
            for batch in file.iter_batches(batch_size=256, columns=texts):
                yield str(batch.to_pylist())
    elif isinstance(path, Path) and path.suffix in (".sqlite", ".sqlite3", ".db"):
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                yield from map(str, database.execute(f'SELECT * FROM "{table}"'))
    else:
        with path.open("rb") as file:
            end = ""
            while part := file.read(_AT_ONCE):
                text = end + part.decode("latin-1")
                yield text
                end = text[-63:]
