"""Which row is meant: by an id, the beginning of one, or the row of its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.tables import Tables

MIN_PREFIX = 6
"""Shorter beginnings of ids mean too many rows to be worth a search."""
_IDS = ("trajectory_id", "sample_id")


class RowUnknown(Exception):
    """No table holds such a row."""


class RowAmbiguous(Exception):
    """Several rows are meant; ``candidates`` says which."""

    def __init__(self, query: str, candidates: Sequence[Subject]) -> None:
        super().__init__(f"{query!r} means {len(candidates)} rows; name one of them")
        self.candidates = tuple(candidates)


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """What is to be explained: a trajectory, a sample with all its trajectories, or a row that intake took out."""

    kind: Literal["trajectory", "sample", "source row"]
    id: str
    """``<source>:<source_row>`` of a source row."""
    sample_id: str = ""
    where: str = ""
    """For people: its family, or its place in its source."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """One parquet file below the tables' root. ``asset``: ``("crop", "drafts")``."""

    path: Path
    asset: tuple[str, ...]
    partition: str
    holds_rejects: bool


def table_files(tables: Tables) -> list[TableFile]:
    """Every table and every table of rejects; the tables that only collect other tables' rejects are left out."""
    found = []
    for path in sorted(tables.root.rglob("[!.]*.parquet")):
        asset = path.parent.relative_to(tables.root).parts
        if asset[-1] != "rejects":
            holds_rejects = path.stem.endswith(".rejects")
            found.append(TableFile(path, asset, path.stem.removesuffix(".rejects"), holds_rejects))
    return found


def matching(file: TableFile, condition: Any, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a file that fulfil a condition of ``pyarrow.compute``."""
    rows: list[dict[str, Any]] = pq.read_table(file.path, filters=condition, columns=columns).to_pylist()
    return rows


def find_subject(tables: Tables, query: str) -> Subject:
    """The one row that ``query`` means. Raises ``RowUnknown`` and ``RowAmbiguous``, each saying what to do."""
    files = table_files(tables)
    found = _distinct(subject for file in files for subject in _by_place(file, query))
    if not found and len(query) >= MIN_PREFIX:
        found = _distinct(subject for file in files for subject in _by_id(file, query))
        found = [subject for subject in found if subject.id == query] or found
    if not found:
        raise RowUnknown(_unknown(query, files, tables.root))
    if len(found) > 1:
        raise RowAmbiguous(query, found)
    return found[0]


def _distinct(subjects: Iterable[Subject]) -> list[Subject]:
    """Each row once: a sample of two sources is one."""
    return sorted({(subject.kind, subject.id): subject for subject in subjects}.values())


def _unknown(query: str, files: Sequence[TableFile], root: Path) -> str:
    if not files:
        return f"there are no tables in {root} yet; run `darkroom demo`, or `darkroom materialize SOURCE`"
    short = f"; the beginning of an id has at least {MIN_PREFIX} characters" if len(query) < MIN_PREFIX else ""
    return (
        f"no row {query!r} in the {len(files)} tables of {root}{short}. Name a trajectory_id, a sample_id or the "
        "beginning of one, or a row of a source (photo/cat, or demo:photo/cat)"
    )


def _by_place(file: TableFile, query: str) -> Iterator[Subject]:
    """Samples and intake's rejects by the row of their source, with or without the source's name."""
    if not {"source", "source_row"} <= set(pq.read_schema(file.path).names):
        return
    source, _, rest = query.partition(":")
    row = pc.field("source_row")
    condition = (row == query) | ((pc.field("source") == source) & (row == rest))
    for found in matching(file, condition, ["source", "source_row", "sample_id"]):
        place = f"{found['source']}:{found['source_row']}"
        if found["sample_id"]:
            yield Subject("sample", found["sample_id"], found["sample_id"], place)
        else:
            yield Subject("source row", place)


def _by_id(file: TableFile, prefix: str) -> Iterator[Subject]:
    names = set(pq.read_schema(file.path).names)
    for column in (name for name in _IDS if name in names):
        for found in matching(file, pc.starts_with(pc.field(column), prefix)):
            if column == "trajectory_id":
                yield Subject("trajectory", found[column], found["sample_id"], found.get("family", ""))
            elif found.get("source_row"):
                yield Subject("sample", found[column], found[column], f"{found['source']}:{found['source_row']}")
