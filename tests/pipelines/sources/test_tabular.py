"""Datasets and parquet files, streamed: images come as the bytes that the files hold."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceError, SourceRow
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.source_config import SourceConfig, split_of
from darkroom.pipelines.sources.tabular import TabularSource

pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def row(make_image, encoded) -> Callable[[int], dict[str, Any]]:
    def make(n: int) -> dict[str, Any]:
        image = {"bytes": encoded(make_image(n), "JPEG"), "path": f"{n}.jpg"}
        return {"image": image, "question": f"Question {n}?", "answer": str(n)}

    return make


@pytest.fixture
def folder(tmp_path, row) -> Path:
    """Three parquet files of two rows, with ``datasets``' image feature."""
    inside = tmp_path / "parquet"
    inside.mkdir()
    features = datasets.Features(
        {"image": datasets.Image(), "question": datasets.Value("string"), "answer": datasets.Value("string")}
    )
    for n in range(3):
        rows = [row(2 * n), row(2 * n + 1)]
        datasets.Dataset.from_list(rows, features=features).to_parquet(inside / f"{n}.parquet")
    return inside


def dataset(path: Path | str, *, kind: str = "huggingface", **settings: Any) -> TabularSource:
    return TabularSource("streets", SourceConfig(kind=kind, path=str(path), **settings))


def parquet(path: Path | str, columns: Columns = Columns(), **settings: Any) -> TabularSource:  # noqa: B008
    return dataset(path, kind="parquet", columns=columns, **settings)


def taken(source: TabularSource, shard: int = 0) -> list[SourceRow]:
    rows = list(source.rows(shard))
    assert all(isinstance(row, SourceRow) for row in rows), rows
    return rows  # type: ignore[return-value]  # said just above


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


# --- what cannot be read


def test_a_missing_column_says_which_there_are(folder):
    with pytest.raises(SourceError, match=r"no column 'query'; it has 'image', 'question', 'answer'"):
        list(parquet(folder, Columns(question="query")).rows(0))


@pytest.mark.parametrize("damage", [b"", b"not parquet", b"PAR1 and no more PAR1"])
def test_a_corrupt_parquet_file_is_named(folder, damage):
    (folder / "1.parquet").write_bytes(damage)
    with pytest.raises(SourceError, match=r"1\.parquet"):
        list(parquet(folder).rows(0))


def test_a_parquet_file_that_is_damaged_in_the_middle_is_named(folder):
    data = bytearray((folder / "1.parquet").read_bytes())
    data[4:60] = b"\xff" * 56
    (folder / "1.parquet").write_bytes(data)
    with pytest.raises(SourceError, match=r"1\.parquet"):
        list(parquet(folder).rows(0))


@pytest.mark.parametrize("path", ["none", "none.parquet", "."])
def test_a_path_without_parquet_files_is_an_error(tmp_path, path):
    with pytest.raises(SourceError, match="there are no parquet files at"):
        list(parquet(tmp_path / path).rows(0))


def test_a_hub_that_cannot_be_reached_is_an_error_at_once():
    started = time.perf_counter()
    with pytest.raises(SourceError, match=r"cannot load someone/something.*[Hh]ub"):
        list(dataset("someone/something").rows(0))
    assert time.perf_counter() - started < 30


def test_a_folder_without_data_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="cannot load"):
        list(dataset(tmp_path).rows(0))


def test_a_split_that_is_not_there_is_an_error(folder):
    with pytest.raises(SourceError, match="validation"):
        list(dataset(folder, split="validation").rows(0))


def test_more_shards_than_files_are_an_error(folder):
    with pytest.raises(SourceError, match="4 shards of 3 files; set n_shards to 3 or less"):
        list(parquet(folder, n_shards=4).rows(0))


def test_files_of_different_columns_are_an_error(folder):
    write_table(folder / "3.parquet", [{"picture": 1}])
    with pytest.raises(SourceError, match="streets"):
        list(parquet(folder).rows(0))


# --- parquet


def test_image_features_come_as_their_bytes(folder, row):
    rows = taken(parquet(folder, license="CC0-1.0"))
    assert [one.images for one in rows] == [(row(n)["image"]["bytes"],) for n in range(6)]
    assert [one.question for one in rows] == [f"Question {n}?" for n in range(6)]
    assert [one.row for one in rows] == [f"train/0/{n}" for n in range(6)]
    assert {one.license for one in rows} == {"CC0-1.0"}


def test_no_image_is_decoded_on_the_way(folder, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an image was opened")

    monkeypatch.setattr(Image, "open", refuse)
    assert len(taken(parquet(folder))) == 6


def test_a_damaged_image_is_handed_over_as_it_is(tmp_path):
    path = write_table(tmp_path / "a.parquet", [{"image": {"bytes": b"text"}, "question": "?", "answer": "!"}])
    assert taken(parquet(path))[0].images == (b"text",)


@pytest.mark.parametrize("n_shards", [1, 2, 3])
def test_the_shards_partition_the_rows(folder, n_shards):
    shards = [[row.question for row in taken(parquet(folder, n_shards=n_shards), n)] for n in range(n_shards)]
    assert sorted(chain(*shards)) == [f"Question {n}?" for n in range(6)]
    assert all(shards)


def test_reading_a_shard_twice_gives_the_same_rows(folder):
    source = parquet(folder, n_shards=2)
    assert taken(source, 1) == taken(source, 1)


@pytest.mark.parametrize("shape", ["struct", "bytes", "list of structs", "list of bytes", "list of features"])
def test_images_come_in_every_shape_that_is_usual(tmp_path, row, shape):
    struct = row(1)["image"]
    path = tmp_path / "a.parquet"
    value = {"struct": struct, "bytes": struct["bytes"], "list of bytes": [struct["bytes"]]}.get(shape, [struct])
    if shape == "list of features":
        features = datasets.Features(
            {
                "image": datasets.List(datasets.Image()),
                "question": datasets.Value("string"),
                "answer": datasets.Value("string"),
            }
        )
        datasets.Dataset.from_list([{**row(1), "image": value}], features=features).to_parquet(path)
    else:
        write_table(path, [{**row(1), "image": value}])
    assert taken(parquet(path))[0].images == (struct["bytes"],)


def test_paths_are_below_the_folder_of_the_file(tmp_path, row):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.jpg").write_bytes(row(1)["image"]["bytes"])
    path = write_table(tmp_path / "a.parquet", [{**row(1), "image": "images/1.jpg"}])
    assert taken(parquet(path))[0].images == (row(1)["image"]["bytes"],)


def test_a_bad_row_does_not_stop_the_others(tmp_path, row):
    path = write_table(tmp_path / "a.parquet", [row(0), {**row(1), "image": None}, {**row(2), "answer": None}, row(3)])
    rows = list(parquet(path).rows(0))
    assert [row.reason if isinstance(row, BadRow) else None for row in rows] == [
        None,
        Reason.MISSING_IMAGE,
        Reason.WRONG_TYPE,
        None,
    ]
    assert rows[1].row == "train/0/1"


def test_rows_may_be_named_by_a_column(tmp_path, row):
    path = write_table(tmp_path / "a.parquet", [{**row(0), "id": 41}])
    assert taken(parquet(path, Columns(row_id="id")))[0].row == "41"


def test_boxes_and_choices_come_from_nested_columns(tmp_path, row):
    nested = {"choices": ["red", "blue"], "answer": 1, "boxes": [{"box": [1.0, 2.0, 3.0, 4.0], "label": "sign"}]}
    path = write_table(tmp_path / "a.parquet", [{**row(0), **nested}])
    (one,) = taken(parquet(path, Columns(choices="choices", boxes="boxes")))
    assert (one.answer, one.choices, one.boxes.boxes[0].label) == ("B", ("A. red", "B. blue"), "sign")


# --- local datasets


def test_a_folder_of_jsonl_is_a_dataset(tmp_path, row):
    (tmp_path / "images").mkdir()
    lines = []
    for n in range(3):
        (tmp_path / "images" / f"{n}.jpg").write_bytes(row(n)["image"]["bytes"])
        lines.append(json.dumps({**row(n), "image": f"images/{n}.jpg"}))
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    (tmp_path / "README.md").write_text("---\nconfigs:\n- config_name: default\n  data_files: data.jsonl\n---\n")
    assert [one.images[0] for one in taken(dataset(tmp_path))] == [row(n)["image"]["bytes"] for n in range(3)]


def test_an_image_folder_with_metadata_is_a_dataset(tmp_path, row):
    for n in range(3):
        (tmp_path / f"{n}.jpg").write_bytes(row(n)["image"]["bytes"])
    rows = [{"file_name": f"{n}.jpg", "question": f"Question {n}?", "answer": f"a{n}"} for n in range(3)]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = taken(dataset(tmp_path))
    assert {one.question: one.images[0] for one in found} == {
        f"Question {n}?": row(n)["image"]["bytes"] for n in range(3)
    }


def test_images_in_an_archive_are_read_from_it(tmp_path, row):
    with zipfile.ZipFile(tmp_path / "train.zip", "w") as archive:
        archive.writestr("1.jpg", row(1)["image"]["bytes"])
        archive.writestr("metadata.jsonl", json.dumps({"file_name": "1.jpg", "question": "?", "answer": "!"}))
    (one,) = taken(dataset(tmp_path))
    assert one.images == (row(1)["image"]["bytes"],)


# --- the fingerprint


def test_the_fingerprint_follows_files_revision_and_mapping(folder):
    seen = [
        parquet(folder).fingerprint,
        parquet(folder, n_shards=2).fingerprint,
        parquet(folder, Columns(row_id="answer")).fingerprint,
        parquet(folder, revision="main").fingerprint,
    ]
    (folder / "1.parquet").write_bytes((folder / "0.parquet").read_bytes() + b" ")
    seen.append(parquet(folder).fingerprint)
    assert len(set(seen)) == 5
    assert parquet(folder).fingerprint == seen[-1]


# --- some files, another folder


def test_only_the_named_files_of_a_dataset_are_read(folder):
    assert {row.question for row in taken(parquet(folder, files=("1.parquet",)))} == {"Question 2?", "Question 3?"}
    local = dataset(folder, files=("2.parquet",))
    assert {row.question for row in taken(local)} == {"Question 4?", "Question 5?"}


def test_paths_may_begin_in_another_folder_or_in_an_archive(tmp_path, row):
    data = row(1)["image"]["bytes"]
    path = write_table(tmp_path / "tables" / "a.parquet", [{**row(1), "image": "1.jpg"}])
    (tmp_path / "1.jpg").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("1.jpg", data)
    for folder in (tmp_path, tmp_path / "images.zip"):
        assert taken(parquet(path, folder=str(folder)))[0].images == (data,)


def test_a_nested_column_is_found_in_the_schema(tmp_path, row):
    path = write_table(tmp_path / "a.parquet", [{**row(0), "extra": {"q": "Why?", "deep": {"a": "so"}}, "note": "{}"}])
    (one,) = taken(parquet(path, Columns(question="extra.q", answer="extra.deep.a")))
    assert (one.question, one.answer) == ("Why?", "so")
    with pytest.raises(SourceError, match=r"no column 'extra.none'; it has .*'extra', .*'extra.deep.a', .*'note'"):
        taken(parquet(path, Columns(question="extra.none")))


# --- splits


def test_a_folder_of_several_splits_needs_one(folder, row):
    for n, split in enumerate(("train", "test")):
        datasets.Dataset.from_list([row(n)]).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    for path in folder.glob("?.parquet"):
        path.unlink()
    assert [one.question for one in taken(parquet(folder, split="test"))] == ["Question 1?"]
    assert [one.question for one in taken(parquet(folder, files=("test-*",)))] == ["Question 1?"]
    for kind in ("parquet", "huggingface"):
        with pytest.raises(SourceError, match=r"several splits.* Set `split` to one of: (train, test|test, train)"):
            list(dataset(folder, kind=kind).rows(0))
        with pytest.raises(SourceError, match="validation"):
            list(dataset(folder, kind=kind, split="validation").rows(0))


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00002.parquet", "train"),
        ("data/v_perception_40k-00000-of-00002.parquet", "v_perception_40k"),
        ("test/data-00000-of-00001.arrow", "test"),
        ("annotations/instances_val2017.json", "validation"),
        ("eval.jsonl", "test"),
        ("0000.parquet", ""),
        ("trained/contest.json", ""),
    ],
)
def test_a_file_names_its_split(name, split):
    assert split_of(Path(name)) == split


def test_files_that_are_named_as_their_images_are_of_the_split_of_their_folder():
    assert split_of(Path("labels/train/a_test.txt"), by_folder=True) == "train"
    assert split_of(Path("Annotations/test_1.xml"), by_folder=True) == ""
