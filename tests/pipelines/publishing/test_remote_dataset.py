"""A home in an object store: the dataset has the bytes that it has in a folder, and is read like one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.dataset_reader import dataset_files, dataset_folders, find_datasets, read_rows
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.storage import atomic_write
from darkroom.pipelines.storage.atomic_write import MARKER, local_copy
from darkroom.pipelines.storage.tables import TableKey, TableMissing
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource
from tests.pipelines.publishing.shipping import PARTITION

CROP = load_recipes()["crop"]


def materialised(workspace: Workspace) -> SftDataset:
    engine.intake(workspace, SmallSource(), 0, PARTITION)
    family = Family(workspace, CROP, PARTITION)
    for stage in (family.draft, family.run):
        stage(oracle_policy(CROP.family, revision=CROP.digest))
    family.check()
    family.keep()
    return dataset_of(workspace)


def dataset_of(workspace: Workspace) -> SftDataset:
    return SftDataset(workspace, CROP, [PARTITION], validation_share=0.5)


@pytest.fixture
def remote(object_store, tmp_path) -> Iterator[Workspace]:
    environment = {"DARKROOM_HOME": object_store.url(), "DARKROOM_LOCAL": str(tmp_path / "local")}
    with Workspace.from_environment(environment) as opened:
        yield opened


@pytest.mark.usefixtures("shipped")
def test_a_home_in_an_object_store_has_the_bytes_of_a_folder(remote, workspace):
    (_, ours), (_, theirs) = dataset_of(workspace).publish(), materialised(remote).publish()
    assert (theirs.n_rows, theirs.n_bytes) == (ours.n_rows, ours.n_bytes)
    for path in ours.folder.iterdir():
        assert (theirs.folder / path.name).read_bytes() == path.read_bytes(), path.name
    assert str(theirs.folder).startswith(remote.home.protocol)
    assert [row["trajectory_id"] for row in read_rows([theirs.folder])] == [
        row["trajectory_id"] for row in read_rows([ours.folder])
    ]
    again = dataset_of(remote).publish()
    assert again[0].reused
    assert not list(remote.local.glob("datasets/*/*")), "nothing of it stays here"
    assert find_datasets("crop", remote.home / "datasets" / "sft") == [theirs.folder]
    assert find_datasets(str(theirs.folder), remote.home) == [theirs.folder]
    assert dataset_folders(remote.home / "datasets" / "sft") == [theirs.folder]

    copy = remote.local_datasets("sft", "crop")
    assert {path.name for path in copy.iterdir()} == {path.name for path in ours.folder.iterdir()}
    assert remote.local_datasets("sft") == copy.parent
    atomic_write.remove_folder(theirs.folder)
    remote.local_datasets("sft")
    assert not copy.exists(), "what is no longer in the store is no longer here"


def folder_with(path, **files: str):
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    (path / MARKER).write_text(str(files))
    return path


def test_a_folder_is_not_a_dataset_until_its_marker_is_there(remote, tmp_path, monkeypatch):
    folder = remote.dataset("sft", "crop")
    atomic_write.replace_folder(folder, folder_with(tmp_path / "one", train__parquet="1", old__parquet="1"))
    assert [path.name for path in dataset_files(folder)] == ["old.parquet", "train.parquet"]
    upload, uploaded = atomic_write.upload, []

    def interrupted(part, to):
        if part.name == MARKER:
            raise KeyboardInterrupt
        uploaded.append(part.name)
        upload(part, to)

    monkeypatch.setattr(atomic_write, "upload", interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic_write.replace_folder(folder, folder_with(tmp_path / "two", train__parquet="2"))
    assert uploaded == ["train.parquet"]
    assert dataset_files(folder) == []
    with pytest.raises(TableMissing):
        find_datasets("crop", remote.home / "datasets" / "sft")

    monkeypatch.setattr(atomic_write, "upload", upload)
    atomic_write.replace_folder(folder, tmp_path / "two")
    assert [path.read_text() for path in dataset_files(folder)] == ["2"]


def test_a_local_copy_is_made_again_when_the_dataset_is_another(remote, tmp_path):
    folder = remote.dataset("sft", "crop")
    for n in "12":
        atomic_write.replace_folder(folder, folder_with(tmp_path / n, train__parquet=n))
        assert (local_copy(folder, tmp_path / "copy") / "train.parquet").read_text() == n
    (tmp_path / "copy" / "train.parquet").write_text("kept")
    assert (local_copy(folder, tmp_path / "copy") / "train.parquet").read_text() == "kept"


def test_a_reader_finds_no_reject_without_its_table(remote):
    assert remote.tables.keys(("crop", "drafts")) == []
    with pytest.raises(TableMissing):
        remote.tables.read_rejects(TableKey(("crop", "drafts"), PARTITION))
