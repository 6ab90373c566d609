"""The reader of shipped datasets: which folders a name means, a folder's files by split, their kind, and their rows,
with images and videos as ``{"bytes": …, "path": …}``. For training, ``train/examples/datasets.py`` reads them."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import pyarrow.parquet as pq

from darkroom.pipelines.storage.atomic_write import MARKER
from darkroom.pipelines.storage.row_files import footer
from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import StorePath, children, content, has_file, opened, store_path
from darkroom.pipelines.storage.tables import TableKey, TableMissing
from darkroom.sandbox.errors import UserError

R = TypeVar("R")
T = TypeVar("T")
P = TypeVar("P", bound=StorePath)
Rows = Iterator[dict[str, Any]]
Kind = Literal["trajectories", "prompts"]
"""Whole conversations (``datasets/sft``), or questions with graders (``datasets/rl/prompts``)."""
ASSETS: Mapping[Kind, str] = {"trajectories": "sft_dataset", "prompts": "rl_dataset"}
KEYS: Mapping[Kind, str] = {"trajectories": "trajectory_id", "prompts": "sample_id"}
"""The column that names a row."""
SAMPLE = ("source", "source_row", "license", "category", "question", "choices")
"""Columns that a sample's fields fill as they are, in both kinds of datasets."""
ALL = "all"
_ADDED: Mapping[str, frozenset[str]] = {"prompts": frozenset({"visual_search", "accepted"})}
"""Columns that datasets of earlier versions lack; there they are null."""
_ROWS_AT_ONCE, _ROWS_WITHOUT_IMAGES_AT_ONCE = 16, 256


class DatasetError(UserError):
    """A file that is no shipped dataset: its columns, and what to do."""


def find_datasets(name: str, root: StorePath, *, may_be_empty: bool = False) -> list[StorePath]:
    """The folders that ``name`` means: a family below ``root``, ``all`` of them, or a folder of one or of several.
    Raises ``TableMissing``, naming the asset to materialise, when there is none, unless that may be."""
    at = root if name == ALL else store_path(name) if "://" in name or not (root / name).is_dir() else root / name
    folders = [*([at] if dataset_files(at) else []), *dataset_folders(at)]
    if not folders and not may_be_empty:
        families = ", ".join(folder.name for folder in dataset_folders(root)) or "none"
        which = f"{name!r} is neither a folder with a dataset nor a family that has one (there are: {families})"
        missing = f"no dataset is in {root} yet" if name == ALL else which
        raise TableMissing(f"{missing}. Run: darkroom materialize SOURCE, or darkroom demo")
    return folders


def find_trajectories(name: str, root: StorePath, *, may_be_empty: bool = False) -> list[StorePath]:
    """Find datasets of trajectories. Raises ``DatasetError`` for another kind, else as ``find_datasets``."""
    folders = find_datasets(name, root, may_be_empty=may_be_empty)
    for folder in folders:
        if (kind := kind_of(dataset_files(folder)[0])) != "trajectories":
            raise DatasetError(f"{folder} holds {kind}, no trajectories. For these: darkroom audit, darkroom export")
    return folders


def dataset_folders(root: P) -> list[P]:
    """The folders in ``root`` that hold a dataset, sorted. Hidden ones are being written."""
    with storage_errors(str(root)):
        names = [folder.name for folder in children(root) if not folder.name.startswith(".") and folder.is_dir()]
    return [folder for name in names if dataset_files(folder := cast(P, root / name))]


def dataset_files(folder: P, *, split: str | None = None, nested: bool = False) -> list[P]:
    """The parquet files of ``split`` (None: of every split), sorted; ``nested``: those of folders below, too. Hidden
    files and folders are being written, and so is a folder in an object store that has no marker."""
    with storage_errors(str(folder)):
        paths = folder.rglob("*.parquet") if nested else children(folder)
        names = sorted(str(path)[len(str(folder)) + 1 :] for path in paths if path.suffix == ".parquet")
        if not isinstance(folder, Path) and not nested and names and not has_file(folder / MARKER):
            return []
    files = [cast(P, folder / name) for name in names if not any(part.startswith(".") for part in name.split("/"))]
    return [file for file in files if split in (None, split_of(file))]


def marker_facts(folder: StorePath) -> dict[str, Any]:
    """Read the marker of a dataset or an export; empty if it is missing or broken: the folder is incomplete."""
    with suppress(ValueError):
        return read_marker(folder)
    return {}


def read_marker(folder: StorePath) -> dict[str, Any]:
    """``marker_facts`` that raises ``ValueError`` for a broken marker."""
    marker = content(folder / MARKER)
    facts = {} if marker is None else json.loads(marker)
    if not isinstance(facts, dict):
        raise ValueError("it is no JSON object")
    return facts


_ORIGINS = {"written_by": "not stated", "judged_by": "no judge", "annotated_by": "nobody"}


def origins_in(folders: Iterable[StorePath]) -> dict[str, str]:
    """Who wrote, judged and annotated the rows of datasets in ``folders`` or below them, by their markers; earlier
    versions' do not state it."""
    datasets = chain.from_iterable(dataset_folders(folder) or [folder] for folder in folders)
    origins = [_origins(marker_facts(folder).get("origins")) for folder in datasets] or [_origins(None)]
    return {what: "; ".join(dict.fromkeys(each[what] for each in origins)) for what in _ORIGINS}


def _origins(stated: Any) -> dict[str, str]:
    if not (isinstance(stated, dict) and stated.get("written_by")):
        return dict.fromkeys(_ORIGINS, _ORIGINS["written_by"])
    return {what: str(stated.get(what) or nobody) for what, nobody in _ORIGINS.items()}


def split_of(file: StorePath) -> str:
    """``train`` for ``train-00000-of-00003.parquet``."""
    return file.stem.split("-")[0]


def columns_of(file: StorePath) -> set[str]:
    return set(footer(file).schema.to_arrow_schema().names)


def kind_of(file: StorePath) -> Kind:
    """The kind by the columns. Raises ``DatasetError`` for single decisions ("pivots") of earlier versions."""
    columns = columns_of(file)
    if "pivot_id" in columns:
        kind = "a kind of dataset of earlier versions. `datasets.load_dataset` reads it as it is"
        raise DatasetError(f"{file} holds pivots, {kind}")
    return "prompts" if "grader" in columns and "rounds" not in columns else "trajectories"


def require_columns(file: StorePath, kind: Kind, needed: Collection[str], *, only: bool = False) -> None:
    """Raise ``DatasetError`` for a column of ``needed`` that is missing, later ones apart; ``only``: and for others."""
    columns = columns_of(file)
    unknown = columns.difference(needed) if only else set()
    missing = set(needed) - columns - _ADDED.get(kind, frozenset())
    if missing or unknown:
        found = f"{file} is no shipped dataset of {kind}: missing {sorted(missing)}, unknown {sorted(unknown)}"
        raise DatasetError(f"{found}. Run: {TableKey((ASSETS[kind],), 'all').command}")


def n_rows_of(files: Iterable[StorePath]) -> int:
    return sum(int(footer(file).num_rows) for file in files)


def read_files(files: Iterable[StorePath], *, without: Collection[str] = (), only: Collection[str] = ()) -> Rows:
    """The rows of files, a few in memory at a time; no bytes of media ``without``. ``only``: these columns, if any."""
    n_rows = _ROWS_WITHOUT_IMAGES_AT_ONCE if only or "images" in without else _ROWS_AT_ONCE
    for path in files:
        with storage_errors(str(path)), opened(path) as source, pq.ParquetFile(source) as file:
            leaves = [file.schema.column(place).path for place in range(len(file.schema))]
            bare = [leaf for leaf in leaves if not (leaf.endswith(".bytes") and leaf.split(".")[0] in without)]
            bare = [leaf for leaf in bare if not only or leaf.split(".")[0] in only]
            for batch in file.iter_batches(batch_size=n_rows, columns=bare if only or without else None):
                yield from batch.to_pylist()


def row_at(path: StorePath, place: int) -> dict[str, Any]:
    """The row of a file that comes after ``place`` others, with its images' bytes. Raises ``DatasetError``."""
    with storage_errors(str(path)), opened(path) as source, pq.ParquetFile(source) as file:
        for group in range(file.num_row_groups):
            n_rows = file.metadata.row_group(group).num_rows
            if place < n_rows:
                for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=[group]):
                    if place < batch.num_rows:
                        return cast(dict[str, Any], batch.slice(place, 1).to_pylist()[0])
                    place -= batch.num_rows
            place -= n_rows
    raise DatasetError(f"{path} was truncated while it was read; rerun the command")


def read_rows(folders: Sequence[StorePath], *, limit: int | None = None) -> Rows:
    """The rows of ``folders``, at most ``limit`` of each, with the images' bytes."""
    for folder in folders:
        yield from islice(read_files(dataset_files(folder)), limit)


def count_rows(folders: Sequence[StorePath], *, limit: int | None = None) -> int:
    counts = [n_rows_of(dataset_files(folder)) for folder in folders]
    return sum(count if limit is None else min(count, limit) for count in counts)


def map_in_threads(rows: Iterable[R], perform: Callable[[R], T]) -> Iterator[T]:
    """``perform`` on every row, in the rows' order, a thread for each CPU; at most two rows a thread are in memory."""
    n_threads = os.cpu_count() or 1
    with ThreadPoolExecutor(n_threads) as threads:
        yield from in_order(lambda row: threads.submit(perform, row), rows, most=2 * n_threads)


def in_order(submit: Callable[[R], Future[T]], rows: Iterable[R], *, most: int) -> Iterator[T]:
    """Results of what ``submit`` begins, in the order of the rows; at most so many are under way or wait to be read."""
    waiting: deque[Future[T]] = deque()
    for row in rows:
        waiting.append(submit(row))
        if len(waiting) == most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
