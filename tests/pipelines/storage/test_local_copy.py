"""What a training reports gets to the home, wherever that is."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from darkroom.pipelines.storage.atomic_write import MARKER, local_copy, share_folder
from darkroom.pipelines.storage.store_paths import store_path
from darkroom.pipelines.storage.workspace import Workspace


def report(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(text)


def test_a_report_is_in_the_home_also_where_local_things_are_in_another_folder(tmp_path):
    environment = {"DARKROOM_HOME": str(tmp_path / "home"), "DARKROOM_LOCAL": str(tmp_path / "local")}
    workspace = Workspace.from_environment(environment)
    made, home = workspace.local / "evaluations" / "grpo", workspace.evaluation("grpo")
    for text in ("first", "second"):
        report(made, text)
        share_folder(made, home)
        assert (home / "report.json").read_text() == text
    assert [path.name for path in home.parent.iterdir()] == ["grpo"]


def test_a_report_that_lies_where_it_is_to_be_stays_there(tmp_path):
    report(tmp_path / "grpo", "a report")
    share_folder(tmp_path / "grpo", tmp_path / "grpo")
    assert (tmp_path / "grpo" / "report.json").read_text() == "a report"


def test_a_report_is_uploaded_to_an_object_store(object_store, tmp_path):
    report(tmp_path / "grpo", "a report")
    home = store_path(object_store.url()) / "evaluations" / "grpo"
    share_folder(tmp_path / "grpo", home)
    assert (home / "report.json").read_text() == "a report"


def dataset(folder, text):
    (folder / "train-00000-of-00001.parquet").write_text(text)
    (folder / MARKER).write_text(text)


def test_a_dataset_by_url_is_copied_where_assets_copy_it_and_of_another_home_elsewhere(object_store, tmp_path):
    home, other = store_path(object_store.url()), store_path(object_store.url("other"))
    workspace = Workspace.from_environment({"DARKROOM_HOME": str(home), "DARKROOM_LOCAL": str(tmp_path / "local")})
    for root in (home, other):
        dataset(root / "datasets" / "sft" / "crop", root.name)
    own = workspace.local_dataset(f"{home}/datasets/sft/crop")
    assert own == workspace.local_datasets("sft", "crop") == tmp_path / "local" / "datasets" / "sft" / "crop"
    theirs = workspace.local_dataset(f"{other}/datasets/sft/crop")
    assert ((own / MARKER).read_text(), (theirs / MARKER).read_text()) == ("home", "other")
    assert workspace.local_dataset(tmp_path / "folder") == tmp_path / "folder"


def copied(url: str, to: Path) -> str:
    return (local_copy(store_path(url), to) / MARKER).read_text()


@pytest.mark.soak
def test_processes_that_want_a_copy_at_once_get_one(object_store, tmp_path):
    folder = store_path(object_store.url()) / "datasets" / "sft" / "crop"
    dataset(folder, "rows")
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as processes:
        copies = [processes.submit(copied, str(folder), tmp_path / "crop") for _ in range(3)]
        assert [copy.result() for copy in copies] == ["rows"] * 3
    assert {path.name for path in (tmp_path / "crop").iterdir()} == {MARKER, "train-00000-of-00001.parquet"}
