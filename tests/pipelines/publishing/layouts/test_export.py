"""The folder: the same bytes twice, whole or not there, rejects beside it, readable without Darkroom."""

from __future__ import annotations

import json
import re
from pathlib import Path

import datasets as hf
import pyarrow.parquet as pq
import pytest
from PIL import Image

from darkroom.pipelines.publishing.dataset_reader import MARKER, DatasetError
from darkroom.pipelines.publishing.layouts import LAYOUTS, LayoutError
from darkroom.pipelines.publishing.layouts.export_source import ExportSource, find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.layouts.record_writer import REJECTS, RecordWriter
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.sandbox.errors import UserError
from tests.pipelines.publishing.layouts.conftest import N_IMAGES

EVERY = pytest.mark.parametrize("name", LAYOUTS)


def folder_bytes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): digest_bytes(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


@EVERY
def test_two_exports_have_the_same_bytes(mixed: ExportSource, tmp_path: Path, name: str) -> None:
    for folder in ("one", "two"):
        export(mixed, LAYOUTS[name], tmp_path / folder)
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")


@EVERY
def test_the_datasets_library_reads_the_folder_and_every_file(mixed: ExportSource, tmp_path: Path, name: str) -> None:
    made = export(mixed, LAYOUTS[name], tmp_path / "out")
    kind = "parquet" if LAYOUTS[name].schema is not None else "json"
    files = [str(path) for path in made.folder.glob("train*.*")]
    rows = hf.load_dataset(kind, data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    assert len(rows) == made.n_rows == (1 if name == "openrlhf_sft" else len(N_IMAGES))
    assert len(hf.load_dataset(str(made.folder), split="train", cache_dir=str(tmp_path / "cache"))) == made.n_rows


@EVERY
def test_the_readme_says_how_the_trainer_is_told(mixed: ExportSource, tmp_path: Path, name: str) -> None:
    made = export(mixed, LAYOUTS[name], tmp_path / "out")
    text = (made.folder / "README.md").read_text()
    assert "FOLDER" in text
    assert "Loss" in text or LAYOUTS[name].prompts_only
    assert str(tmp_path) not in text
    for file in made.folder.glob("train*"):
        assert f"`{file.name}`" in text


def test_the_readme_keeps_a_trainer_from_shrinking_the_largest_image(mixed: ExportSource, tmp_path: Path) -> None:
    made = export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    largest = 0
    for path in made.folder.glob("images/*"):
        with Image.open(path) as image:
            largest = max(largest, image.width * image.height)
    assert f"image_max_pixels: {largest} " in (made.folder / "README.md").read_text()


def test_an_export_of_the_same_rows_does_nothing(mixed: ExportSource, tmp_path: Path) -> None:
    first = export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")}
    again = export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    assert again.reused
    assert (again.n_rows, again.n_images, again.reasons) == (first.n_rows, first.n_images, first.reasons)
    assert {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")} == before


def test_a_folder_that_lost_a_file_is_made_again_with_the_same_bytes(mixed: ExportSource, tmp_path: Path) -> None:
    made = export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    whole = folder_bytes(made.folder)
    next(made.folder.glob("images/*")).unlink()
    assert not export(mixed, LAYOUTS["llama_factory"], tmp_path / "out").reused
    assert folder_bytes(made.folder) == whole


def test_another_layout_replaces_the_folder_and_leaves_nothing_of_the_old_one(
    mixed: ExportSource, tmp_path: Path
) -> None:
    export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    export(mixed, LAYOUTS["verl_sft"], tmp_path / "out")
    assert not (tmp_path / "out" / "images").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


class Killed(BaseException):
    """What a process dies of."""


def test_a_killed_export_leaves_no_folder_and_its_remains_go_with_the_next(
    mixed: ExportSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr(RecordWriter, "image", die)
        with pytest.raises(Killed):
            export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / ".out.0123.part").mkdir()
    export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_of_someone_else_is_not_replaced(mixed: ExportSource, datasets: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(LayoutError, match="no export made"):
        export(mixed, LAYOUTS["llama_factory"], tmp_path)
    with pytest.raises(LayoutError, match="no export made"):
        export(mixed, LAYOUTS["llama_factory"], datasets / "mixed")


@pytest.fixture
def damaged(datasets: Path, tmp_path: Path) -> ExportSource:
    """The family with a row of an unknown protocol, one whose image changed and one whose image is gone."""
    table = pq.read_table(datasets / "mixed" / "train-00000-of-00001.parquet")
    rows = table.to_pylist()
    rows[0]["protocol"] = "morse"
    rows[1]["images"][0]["bytes"] += b"\0"
    rows[2]["images"][1]["bytes"] = None
    folder = tmp_path / "datasets" / "damaged"
    folder.mkdir(parents=True)
    pq.write_table(table.from_pylist(rows, schema=table.schema), folder / "train-00000-of-00001.parquet")
    return find_source("damaged", folder.parent, split="train")


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "openrlhf_sft"])
def test_rows_that_cannot_be_rendered_are_set_aside_with_their_reason_and_the_others_go_on(
    damaged: ExportSource, tmp_path: Path, name: str
) -> None:
    made = export(damaged, LAYOUTS[name], tmp_path / "out")
    rejects = [json.loads(line) for line in (made.folder / REJECTS).read_text().splitlines()]
    assert {reject["trajectory_id"]: reject["reason"] for reject in rejects} == {
        "one_round": "unknown_protocol",
        "last_round": "changed_image",
        "two_images": "missing_image",
    }
    assert all(reject["evidence"] for reject in rejects)
    assert made.n_rows == len(N_IMAGES) - 3


def test_a_prompt_that_two_rows_share_is_exported_once(datasets: Path, tmp_path: Path) -> None:
    (tmp_path / "twice").mkdir()
    source = datasets / "mixed" / "train-00000-of-00001.parquet"
    for n in range(2):
        (tmp_path / "twice" / f"train-0000{n}-of-00002.parquet").write_bytes(source.read_bytes())
    made = export(find_source(str(tmp_path / "twice"), tmp_path, split="train"), LAYOUTS["verl_rl"], tmp_path / "out")
    assert (made.n_rows, made.reasons) == (len(N_IMAGES), {"duplicate_prompt": len(N_IMAGES)})


def test_rows_without_images_come_last_in_json_lines(mixed: ExportSource, tmp_path: Path) -> None:
    made = export(mixed, LAYOUTS["ms_swift"], tmp_path / "out")
    lines = [json.loads(line) for line in (made.folder / "train.jsonl").read_text().splitlines()]
    assert lines[-1]["trajectory_id"] == "text_only"
    assert [path for path in made.folder.iterdir() if "without" in path.name] == []


def test_each_image_lies_once_by_its_digest(mixed: ExportSource, tmp_path: Path) -> None:
    made = export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    files = list((made.folder / "images").iterdir())
    assert len(files) == 4 < made.n_images
    for path in files:
        assert re.fullmatch(r"[0-9a-f]{64}", path.stem)
        assert digest_bytes(path.read_bytes()) == path.stem


def test_llama_factory_is_told_of_the_files_that_there_are(mixed: ExportSource, tmp_path: Path) -> None:
    made = export(mixed, LAYOUTS["llama_factory"], tmp_path / "out")
    info = json.loads((made.folder / "dataset_info.json").read_text())
    assert {name: value["file_name"] for name, value in info.items()} == {
        "darkroom_all_rounds": "train_all_rounds.jsonl",
        "darkroom_last_round": "train_last_round.jsonl",
    }
    assert all((made.folder / value["file_name"]).is_file() for value in info.values())


def test_the_marker_is_hidden_and_names_every_file(mixed: ExportSource, tmp_path: Path) -> None:
    made = export(mixed, LAYOUTS["verl_sft"], tmp_path / "out")
    facts = json.loads((made.folder / MARKER).read_text())
    assert set(facts["files"]) == {path.name for path in made.folder.iterdir()} - {MARKER}


@pytest.mark.parametrize("broken", ["{", "[]", "\udcff"])
def test_a_folder_with_a_broken_marker_is_nobodys(mixed: ExportSource, tmp_path: Path, broken: str) -> None:
    made = export(mixed, LAYOUTS["verl_sft"], tmp_path / "out")
    (made.folder / MARKER).write_text(broken, errors="surrogateescape")
    with pytest.raises(LayoutError, match="holds something that no export made"):
        export(mixed, LAYOUTS["verl_sft"], tmp_path / "out")


def test_all_is_every_family_in_order(datasets: Path) -> None:
    assert find_source("all", datasets, split="train").files == find_source("mixed", datasets, split="train").files


@pytest.mark.parametrize(
    ("dataset", "split", "said"),
    [
        ("nowhere", "train", "there are: mixed"),
        ("mixed", "test", "has no split 'test'; it has train"),
        ("all", "test", "it has train"),
    ],
)
def test_a_dataset_that_is_not_there_is_said_with_what_is(datasets: Path, dataset: str, split: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        find_source(dataset, datasets, split=split)


def test_a_parquet_file_of_something_else_is_refused_by_its_columns(tmp_path: Path, mixed: ExportSource) -> None:
    made = export(mixed, LAYOUTS["verl_sft"], tmp_path / "out")
    file = next(made.folder.glob("*.parquet"))
    file.rename(made.folder / "train-00000-of-00001.parquet")
    with pytest.raises(DatasetError, match=r"no shipped dataset of trajectories: missing \['answer'"):
        find_source(str(made.folder), tmp_path, split="train")
