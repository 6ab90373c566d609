"""Where a home may be, and what of it is local."""

from __future__ import annotations

from pathlib import Path

import pytest
from upath import UPath

from darkroom.pipelines.storage.storage_errors import StorageError
from darkroom.pipelines.storage.store_paths import children, opened, reach, remove, store_path
from darkroom.pipelines.storage.workspace import Workspace


def workspace_of(**variables: str) -> Workspace:
    return Workspace.from_environment({f"DARKROOM_{name}": value for name, value in variables.items()})


def test_a_folder_is_a_path_also_as_a_url():
    assert [store_path(where) for where in ("data", Path("data"), "file:///srv/data")] == [
        Path("data"),
        Path("data"),
        Path("/srv/data"),
    ]
    assert isinstance(store_path("file:///srv/data"), Path)
    assert store_path("~/data") == Path.home() / "data"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("s3:/bucket/home", "is no URL: write s3://"),
        ("gs:bucket", "is no URL: write gs://"),
        ("ftp://host/x", "expected a folder, or a URL with s3, "),
        ("s3://", "names no bucket"),
        ("s3:///", "names no bucket"),
        ("file://srv/data", "three slashes: write file:///srv/data"),
    ],
)
def test_a_url_that_no_home_can_have_is_said(where, words):
    with pytest.raises(StorageError, match=words):
        store_path(where)


def test_in_a_folder_everything_is_in_the_home(tmp_path):
    opened = workspace_of(HOME=str(tmp_path))
    assert opened.local == opened.home == tmp_path
    assert opened.tables.scratch == opened.tables.root
    assert opened.checkpoint("sft") == tmp_path / "checkpoints" / "sft"
    assert opened.local_datasets("sft", "crop") == opened.dataset("sft", "crop") == tmp_path / "datasets/sft/crop"


def test_of_a_home_by_url_only_what_must_be_local_is_here(tmp_path):
    opened = workspace_of(HOME="memory://team/home/", LOCAL=str(tmp_path))
    shared = (opened.tables.root, opened.sources, opened.calibrations, opened.benchmarks, opened.evaluation("sft"))
    assert [str(path) for path in shared] == [
        f"memory://team/home/{name}"
        for name in ("tables", "sources", "calibrations", "benchmarks.yaml", "evaluations/sft")
    ]
    assert opened.images_url == "memory://team/home/images"
    assert opened.ledger_url == f"sqlite:///{tmp_path}/ledger.sqlite"
    assert (opened.annotation, opened.environments) == (tmp_path / "annotation", tmp_path / "environments")


def test_without_a_local_folder_it_is_below_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert workspace_of(HOME="memory://team/home").local == tmp_path / "data"


def test_a_store_is_reached_when_the_workspace_is_opened(object_store):
    with workspace_of(HOME=object_store.url("new")):
        pass
    gone = f"{object_store.protocol}://gone-for-good/home"
    with pytest.raises(StorageError, match=f"^{gone}: its bucket does not exist"), workspace_of(HOME=gone):
        pass


def test_what_is_in_a_store_is_seen_at_once(object_store):
    folder = store_path(object_store.url())
    assert children(folder) == []
    reach(folder)
    (folder / "b" / "file").write_text("1")
    (folder / "a").write_text("2")
    assert [path.name for path in children(folder)] == ["a", "b"]
    remove(folder / "b")
    assert [path.name for path in children(folder)] == ["a"]
    with pytest.raises(FileNotFoundError), opened(folder / "b" / "file"):
        pass


@pytest.mark.parametrize("ahead", [True, False])
def test_an_object_that_is_replaced_while_it_is_read_is_said(object_store, ahead):
    path = store_path(object_store.url()) / "file"
    path.write_bytes(b"a" * 20_000_000)
    with pytest.raises(StorageError, match="run again"):
        read_twice(path, ahead=ahead)


def read_twice(path: UPath, *, ahead: bool) -> None:
    with opened(path, ahead=ahead) as file:
        file.read(10)
        path.write_bytes(b"b" * 20_000_000)
        file.seek(19_000_000)
        file.read(10)
