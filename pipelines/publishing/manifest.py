"""The manifest of a dataset or an export: digests of its files and rows, by which changes since shipping are found.

    {"files": {"README.md": "9c1e…", "train-00000-of-00001.parquet": "…"},
     "rows": {"train": [["crop-3f…", "7a0b…"], …]}, "card": {"title": "Darkroom SFT: crop", …}}

Rows are by split, an export's by file; ``card`` has the facts from which a dataset's card is rendered. The manifest's
own digest is what `darkroom publish` and `darkroom export` print and the hub's commit carries.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.storage.row_files import file_digest
from darkroom.pipelines.storage.store_paths import StorePath

MANIFEST = "MANIFEST"
"""The file's name, whose ending no loader of datasets takes for data."""
MAX_BYTES = 2**30
"""Of a manifest that is read: ten million rows."""
RowDigest = tuple[str, str]
"""A row's id and its digest."""


def row_digest(row: Any) -> str:
    """The digest of a row as its file holds it, over all its columns: 32 hexadecimal digits. Empty for one of a depth
    that no row of ours has."""
    with suppress(RecursionError):
        return digest(_plain(row))[:32]
    return ""


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return digest_bytes(value)
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case float() if not math.isfinite(value):
            return str(value)
        case None | str() | int() | float():
            return value
    return repr(value)  # a column of another type than it was shipped with


def write_manifest(folder: Path, rows: Mapping[str, Sequence[RowDigest]], card: Mapping[str, Any] | None = None) -> str:
    """Write the manifest of a folder that is otherwise complete; returns its digest."""
    facts = {"files": _files(folder), "rows": rows} | ({"card": card} if card else {})
    data = json.dumps(facts, separators=(",", ":")).encode()
    (folder / MANIFEST).write_bytes(data)
    return digest_bytes(data)


def _files(folder: StorePath) -> dict[str, str]:
    """Digests of the files by name; hidden ones are no part of what ships."""
    names = sorted(str(path)[len(str(folder)) + 1 :] for path in folder.rglob("*") if path.is_file())
    return {name: file_digest(folder / name) for name in names if name != MANIFEST and not name.startswith(".")}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files and rows of a folder as they were shipped."""

    digest: str
    card: Mapping[str, Any]
    """Empty in an export, and where an earlier version wrote it."""
    _files: Mapping[str, str]
    _left: Mapping[str, Counter[RowDigest]]
    """Rows by split that have not been read yet."""
    ids: Mapping[str, frozenset[str]]
    """Of rows by split; empty in an export of an earlier version."""
    _read: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, folder: StorePath) -> Self | None:
        """The folder's manifest; None in earlier versions. Raises ``ValueError`` for a damaged or too large one."""
        file = folder / MANIFEST
        if not file.is_file():
            return None
        if (n_bytes := file.stat().st_size) > MAX_BYTES:
            raise ValueError(f"{MANIFEST} has {n_bytes:,} bytes, more than {MAX_BYTES:,}")
        data = file.read_bytes()
        try:
            facts = json.loads(data)
            pairs = {split: [(str(row), str(value)) for row, value in rows] for split, rows in facts["rows"].items()}
            left = {split: Counter(rows) for split, rows in pairs.items()}
            ids = {split: frozenset(row for row, _ in rows) for split, rows in left.items()}
            return cls(digest_bytes(data), dict(facts.get("card") or {}), dict(facts["files"]), left, ids)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"{MANIFEST} cannot be read: {error}") from error

    def changed_files(self, folder: StorePath) -> Iterator[tuple[str, str]]:
        """Names of files that are not as they were shipped, with what happened to them."""
        now = _files(folder)
        for name in sorted(now.keys() | self._files.keys()):
            if now.get(name) != self._files.get(name):
                yield name, "added" if name not in self._files else "changed" if name in now else "missing"

    def take(self, split: str, row_id: str, row: Any) -> str:
        """Compare a row with the one that was shipped: ``changed``, ``added``, or nothing."""
        left, pair = self._left.get(split, Counter()), (row_id, row_digest(row))
        self._read[split].add(row_id)
        if left[pair] > 0:
            left[pair] -= 1
            return ""
        return "changed" if row_id in self.ids.get(split, ()) and pair not in left else "added"

    def missing(self) -> Iterator[str]:
        """Ids of rows that were shipped and that no row read so far has."""
        for split, rows in self._left.items():
            yield from (row_id for row_id, _ in rows.elements() if row_id not in self._read[split])
