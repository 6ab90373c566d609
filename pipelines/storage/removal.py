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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow.parquet as pq

from darkroom.pipelines.records import ImageRef, Reject, Sample, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, reject
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.store_paths import StorePath, children, content, opened, remove_file
from darkroom.pipelines.storage.tables import TableKey

if TYPE_CHECKING:
    from darkroom.pipelines.storage.workspace import Workspace  # heavy, for intake

_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_WITHOUT = re.compile(
    r"images|image_cache|environments|checkpoints|dagster|benchmarks|same_images|removed\.jsonl|ledger\.sqlite.*"
)
"""Folders and files that name no stored file, or none that they need."""
_AT_ONCE = 1 << 24
SAMPLES = ("samples",)


@dataclass(frozen=True, slots=True)
class TakeDown:
    """An image or video that may not be used, by its digest, or a source's row; ``at``: when it was removed, UTC."""

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
        """Words for a reject, without the digest, which would keep the file."""
        return f"the {'image or video' if self.digest else 'row'} was removed on {self.at}"


TakeDowns = Mapping[str, TakeDown]
"""By their names: one look for each name that a row has, however long the list is."""


def taken_down(home: StorePath) -> dict[str, TakeDown]:
    """The workspace's list, oldest first."""
    lines = (content(home / "removed.jsonl") or b"").decode().splitlines()
    return by_name(TakeDown(**json.loads(line)) for line in lines)


def by_name(entries: Iterable[TakeDown]) -> dict[str, TakeDown]:
    return {str(entry): entry for entry in entries}


def digests_of(sample: Sample) -> list[str]:
    """The digests of a sample's images and videos, and of those that they were made of."""
    files: list[ImageRef | VideoRef] = [*sample.images, *sample.videos]
    return [digest for file in files for digest in (file.sha256, file.parent) if digest]


def find_entry(removed: TakeDowns, source: str, row: str, digests: Iterable[str]) -> TakeDown | None:
    """Find the entry that means a row, by its name or the digests of its files."""
    names = (f"{source}:{row}", *digests)
    return next((removed[name] for name in names if name in removed), None)


def take_down(workspace: "Workspace", new: TakeDowns) -> None:
    """Add to the list, then remove the samples that it names, with the tables below them."""
    lines = (json.dumps(asdict(entry), sort_keys=True) for entry in ({**new} | taken_down(workspace.home)).values())
    write_whole(workspace.home / "removed.jsonl", "".join(f"{line}\n" for line in sorted(lines)))
    below = [table for table in workspace.tables.all_keys() if table.asset != SAMPLES]
    for key, by_sample in affected(workspace, new).items():
        _reject_samples(workspace, key, by_sample)
        for table in below:
            if table.partition == key.partition:
                delete_table(workspace, table)


def affected(workspace: "Workspace", new: TakeDowns) -> dict[TableKey, dict[str, TakeDown]]:
    """The tables of samples that hold what is named, each with the entries by the samples' ids."""
    hits: dict[TableKey, dict[str, TakeDown]] = {}
    for key in workspace.tables.keys(SAMPLES):
        for sample in workspace.tables.stream(key, Sample):
            if entry := find_entry(new, sample.source, sample.source_row, digests_of(sample)):
                hits.setdefault(key, {})[sample.sample_id] = entry
    return hits


def _reject_samples(workspace: "Workspace", key: TableKey, by_sample: TakeDowns) -> None:
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


def tables_of(workspace: "Workspace", source: str) -> list[TableKey]:
    """Every table of a source's shards."""
    is_shard = re.compile(rf"{re.escape(source)}-\d{{4,}}")
    return [key for key in workspace.tables.all_keys() if is_shard.fullmatch(key.partition)]


def delete_table(workspace: "Workspace", key: TableKey) -> None:
    """Delete a table with its rejects; the table first, which says whose they are."""
    rejects = workspace.tables.rejects_path(key)
    for path in (workspace.tables.path(key), rejects):
        remove_file(path)


def unreferenced(
    workspace: "Workspace", *, days: float, runs: bool = False, say: Callable[[str], None] | None = None
) -> dict[str, int]:
    """The stored images and videos, with their bytes, that are older than ``days`` and that nothing refers to.
    ``runs``: recorded runs of code, which can be executed again, are no references."""
    before = time.time() - days * 86_400
    files = (file for file in workspace.images.files() if _DIGEST.fullmatch(file[0]))  # no part of one
    unneeded = {sha256: n_bytes for sha256, n_bytes, stored in files if stored < before}
    recorded = () if runs else (text for _, text in workspace.ledger.results("sandbox"))
    for text in chain(_texts(workspace, say), recorded):
        for sha256 in _DIGEST.findall(text):
            unneeded.pop(sha256, None)
    return unneeded


def forget_runs(workspace: "Workspace", deleted: Iterable[str]) -> int:
    """Delete recorded runs of code that show a deleted image: they are executed again when they are needed."""
    gone = set(deleted)
    keys = [key for key, text in workspace.ledger.results("sandbox") if not gone.isdisjoint(_DIGEST.findall(text))]
    workspace.ledger.forget(keys)
    return len(keys)


def _texts(workspace: "Workspace", say: Callable[[str], None] | None) -> Iterator[str]:
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
