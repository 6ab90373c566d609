"""Shards: the rows of one file, in order, in files that equal rows make again, and that every reader puts together."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.inspection.audit import audit
from darkroom.pipelines.inspection.gallery import write_gallery
from darkroom.pipelines.publishing import parquet_shards
from darkroom.pipelines.publishing.dataset_reader import count_rows, dataset_files, find_datasets, read_rows
from darkroom.pipelines.publishing.layouts import LAYOUTS
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.parquet_shards import ShardWriter, write_trajectories
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.examples.datasets import open_dataset
from tests.pipelines.publishing.shipping import PARTITION, shipped_pairs, write_held_out

N_ROWS = 4
Pairs = list[tuple[Sample, Trajectory]]


@pytest.fixture
def pairs(shipped: Path, workspace: Workspace) -> Pairs:
    return shipped_pairs(workspace)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def test_shards_hold_the_rows_of_one_file_in_their_order(pairs: Pairs, workspace: Workspace, tmp_path: Path) -> None:
    one = write_trajectories(tmp_path / "one", pairs, store=workspace.images)
    many = write_trajectories(tmp_path / "many", pairs, store=workspace.images, shard_bytes=1)
    assert names(one.folder) == ["train-00000-of-00001.parquet"]
    assert names(many.folder) == [f"train-{n:05}-of-00004.parquet" for n in range(N_ROWS)]
    assert list(read_rows([many.folder])) == list(read_rows([one.folder]))
    assert (many.n_rows, many.n_images) == (one.n_rows, one.n_images) == (N_ROWS, 8)
    assert many.n_bytes == sum(path.stat().st_size for path in dataset_files(many.folder))


def test_a_shard_is_as_large_as_its_limit_allows(
    pairs: Pairs, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_shards, "ROWS_PER_GROUP", 1)
    row = next(read_rows([write_trajectories(tmp_path, pairs[:1], store=workspace.images).folder]))
    limit = 7 * pa.Table.from_pylist([row]).nbytes // 2
    shipped = write_trajectories(tmp_path, pairs[:1] * 7, store=workspace.images, shard_bytes=limit)
    assert [pq.read_metadata(file).num_rows for file in dataset_files(shipped.folder)] == [3, 3, 1]


def test_equal_rows_make_equal_files_and_further_rows_change_the_last_only(
    pairs: Pairs, workspace: Workspace, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("first", "again", "longer")]
    for folder, rows in zip(folders, (pairs, pairs, pairs * 2), strict=True):
        write_trajectories(folder, rows, store=workspace.images, shard_bytes=1)
    first, again, longer = map(contents, folders)
    assert first == again
    assert list(longer.values())[:N_ROWS] == list(first.values())


def test_shards_of_an_earlier_version_go_and_other_splits_stay(
    pairs: Pairs, workspace: Workspace, tmp_path: Path
) -> None:
    write_trajectories(tmp_path, pairs, store=workspace.images, shard_bytes=1)
    write_held_out(tmp_path, pairs, store=workspace.images)
    write_trajectories(tmp_path, pairs[:2], store=workspace.images, shard_bytes=1)
    assert names(tmp_path) == [
        "train-00000-of-00002.parquet",
        "train-00001-of-00002.parquet",
        "validation-00000-of-00001.parquet",
    ]


def test_an_error_leaves_the_earlier_files_and_no_other(pairs: Pairs, workspace: Workspace, tmp_path: Path) -> None:
    write_trajectories(tmp_path, pairs[:1], store=workspace.images)
    before = contents(tmp_path)

    def failing() -> Iterator[tuple[Sample, Trajectory]]:
        yield from pairs
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_trajectories(tmp_path, failing(), store=workspace.images, shard_bytes=1)
    assert contents(tmp_path) == before
    assert names(tmp_path) == sorted(before)


def test_what_a_killed_process_left_goes(pairs: Pairs, workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / ".train-00007.abc").write_bytes(b"half")
    write_trajectories(tmp_path, pairs, store=workspace.images)
    assert names(tmp_path) == ["train-00000-of-00001.parquet"]


def test_files_have_a_page_index(pairs: Pairs, workspace: Workspace, tmp_path: Path) -> None:
    shipped = write_trajectories(tmp_path, pairs, store=workspace.images)
    footer = pq.read_metadata(dataset_files(shipped.folder)[0])
    columns = [footer.row_group(0).column(n) for n in range(footer.num_columns)]
    assert all(column.has_offset_index for column in columns)


def test_a_row_group_ends_with_so_many_rows_or_bytes(
    pairs: Pairs, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def groups(rows: Pairs) -> list[int]:
        shipped = write_trajectories(tmp_path, rows, store=workspace.images)
        footer = pq.read_metadata(dataset_files(shipped.folder)[0])
        return [footer.row_group(n).num_rows for n in range(footer.num_row_groups)]

    monkeypatch.setattr(parquet_shards, "ROWS_PER_GROUP", 3)
    assert groups(pairs) == [3, 1]
    monkeypatch.setattr(parquet_shards, "GROUP_BYTES", 1)
    assert groups(pairs) == [1] * N_ROWS


def test_a_split_without_rows_has_a_file(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "trajectories", "train"):
        pass
    assert names(tmp_path) == ["train-00000-of-00001.parquet"]
    assert count_rows([tmp_path]) == 0


@pytest.fixture
def published(shipped: Path, workspace: Workspace, tmp_path: Path) -> Iterable[Path]:
    """The dataset ``crop`` with a card, in one file and in one shard for each row."""
    folders = []
    for name, shard_bytes in (("one", parquet_shards.SHARD_BYTES), ("many", 1)):
        SftDataset(workspace, load_recipes()["crop"], [PARTITION], shard_bytes=shard_bytes).publish()
        folders.append(tmp_path / name / "crop")
        shutil.copytree(workspace.dataset("sft", "crop"), folders[-1])
    assert [len(dataset_files(folder)) for folder in folders] == [1, N_ROWS]
    return folders


def _gallery(folder: Path) -> Any:
    write_gallery(folder / "page.html", [folder], title="crop")
    entries = re.findall(r'<template class="entry".*?</template>', (folder / "page.html").read_text(), re.DOTALL)
    assert len(entries) == N_ROWS
    return entries


def _export(folder: Path) -> Any:
    exports = {}
    for name, layout in LAYOUTS.items():
        if layout.of == "trajectories":
            out = export(find_source(str(folder), folder, split="train"), layout, folder / "export" / name).folder
            files = (path for path in out.rglob("*") if path.is_file() and path.name != ".darkroom.json")
            exports[name] = {path.relative_to(out).as_posix(): path.read_bytes() for path in files}
    return exports


def _audit(folder: Path) -> Any:
    report = audit([folder], execute=lambda row: iter(()), limit=None)
    return report.n_rows, sorted({finding.kind for finding in report.findings}), report.checked


READERS = {
    "dataset_reader": lambda folder: list(read_rows(find_datasets(str(folder), folder))),
    "limited": lambda folder: list(read_rows([folder], limit=2)),
    "gallery": _gallery,
    "layouts": _export,
    "audit": _audit,
    "training": lambda folder: open_dataset(folder)["trajectory_id"][:],
    "load_dataset": lambda folder: (
        datasets.load_dataset(str(folder), split="train").with_format("arrow")[:].to_pylist()
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_of_shards_reads_the_rows_of_one_file(published: list[Path], reader: str) -> None:
    one, many = map(READERS[reader], published)
    assert one
    assert many == one


def test_the_audits_limit_is_for_each_split(published: list[Path]) -> None:
    assert audit([published[1]], execute=lambda row: iter(()), limit=3).n_rows == 3
