"""What ships: a folder that `datasets` reads, each trajectory once, a card from facts."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import datasets
import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.cards import in_words
from darkroom.pipelines.publishing.dataset_reader import dataset_files, read_files, split_of
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Trajectory
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource

PARTITIONS = ("small-0000", "small-0001")
KEY = TableKey(("sft_dataset",), "crop")


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return load_recipes()["crop"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, recipe: Recipe) -> Path:
    """The small source, taken in twice: the second partition holds nothing but duplicates of the first."""
    home = tmp_path_factory.mktemp("twice")
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        for partition in PARTITIONS:
            engine.intake(workspace, SmallSource(), 0, partition)
            family = Family(workspace, recipe, partition)
            for stage in (family.draft, family.run):
                stage(oracle_policy(recipe.family, revision=recipe.digest))
            family.check()
            family.keep()
    return home


@pytest.fixture
def made(home: Path, workspace: Workspace) -> Workspace:
    """A copy of ``home`` for each test."""
    shutil.copytree(home, workspace.home)
    return workspace


def folder_bytes(folder: Path) -> dict[str, str]:
    return {path.name: digest_bytes(path.read_bytes()) for path in folder.iterdir()}


def test_the_columns_are_the_records_fields_with_images_decoded_in_order(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    rows = datasets.load_dataset("parquet", data_files=str(shipped.folder / "*.parquet"), split="train")
    trajectories = made.tables.read(TableKey(("crop", "trajectories"), PARTITIONS[0]), Trajectory)
    assert rows["trajectory_id"] == [made.trajectory_id for made in trajectories]
    row, record = rows[0], trajectories[0]
    assert [image.size for image in row["images"]] == [(ref.width, ref.height) for ref in record.shown_images]
    assert row["rounds"][0]["code"] == record.rounds[0].code
    assert row["rounds"][0]["observation"]["images"] == [1]
    assert [ref["sha256"] for ref in row["image_refs"]] == [ref.sha256 for ref in record.shown_images]


def test_the_folder_loads_by_its_path_alone(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    assert len(datasets.load_dataset(str(shipped.folder), split="train")) == shipped.n_rows == 4


def test_question_images_keep_the_bytes_that_came_in(made: Workspace, recipe: Recipe, small_source) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    rows = datasets.load_dataset("parquet", data_files=str(shipped.folder / "*.parquet"), split="train")
    rows = rows.cast_column("images", datasets.List(datasets.Image(decode=False)))
    assert rows[0]["images"][0]["bytes"] == next(iter(small_source.rows(0))).images[0]


def test_a_trajectory_of_two_partitions_ships_once_and_the_other_is_a_reject(made: Workspace, recipe: Recipe) -> None:
    report, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    assert (report.n_in, report.n_out, report.reasons, shipped.n_rows) == (8, 4, {"duplicate": 4}, 4)


def test_publishing_again_writes_nothing(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    before = {path: path.stat().st_mtime_ns for path in shipped.folder.iterdir()}
    report, again = SftDataset(made, recipe, PARTITIONS).publish()
    assert report.reused
    assert again == shipped
    assert {path: path.stat().st_mtime_ns for path in shipped.folder.iterdir()} == before


def test_a_folder_that_was_lost_or_half_written_is_written_again_with_the_same_bytes(
    made: Workspace, recipe: Recipe
) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    whole = folder_bytes(shipped.folder)
    (shipped.folder / ".darkroom.json").unlink()
    (shipped.folder / "README.md").write_text("half")
    SftDataset(made, recipe, PARTITIONS).publish()
    assert folder_bytes(shipped.folder) == whole
    (shipped.folder / ".darkroom.json").write_text('{"inp')
    SftDataset(made, recipe, PARTITIONS).publish()
    assert folder_bytes(shipped.folder) == whole


def test_a_quota_ships_exactly_so_many_and_the_others_are_rejects(made: Workspace, recipe: Recipe) -> None:
    report, shipped = SftDataset(made, recipe, PARTITIONS, n_rows=3).publish()
    assert (shipped.n_rows, report.reasons) == (3, {"duplicate": 4, "not_selected": 1})


def test_no_image_is_in_two_splits_and_training_does_not_read_validation(made: Workspace, recipe: Recipe) -> None:
    from darkroom.train.examples.datasets import dataset_files

    _, shipped = SftDataset(made, recipe, PARTITIONS, validation_share=0.5).publish()
    loaded = datasets.load_dataset(str(shipped.folder))
    shown = {name: {ref["sha256"] for refs in split["image_refs"] for ref in refs} for name, split in loaded.items()}
    assert set(shown) == {"train", "validation"}
    assert not shown["train"] & shown["validation"]
    assert [path.name.split("-")[0] for path in dataset_files(shipped.folder)] == ["train"]
    assert f"| split validation | {len(loaded['validation'])} |" in (shipped.folder / "README.md").read_text()


def _splits_of_images(folder: StorePath) -> dict[str, str]:
    """The split of each question's image."""
    rows = ((split_of(file), row) for file in dataset_files(folder) for row in read_files([file]))
    return {row["image_refs"][0]["sha256"]: split for split, row in rows}


def test_published_images_stay_in_their_splits_until_the_share_is_another(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS, n_rows=2, validation_share=0.5).publish()
    first = _splits_of_images(shipped.folder)
    marker = shipped.folder / ".darkroom.json"
    # as if the other way round: whatever digests and families say, it stays
    for split, other in (("train", "part"), ("validation", "train"), ("part", "validation")):
        for path in shipped.folder.glob(f"{split}-*.parquet"):
            path.rename(path.with_name(path.name.replace(split, other)))
    swapped = {image: {"train": "validation", "validation": "train"}[split] for image, split in first.items()}
    assert set(swapped.values()) == {"train", "validation"}
    SftDataset(made, recipe, PARTITIONS, validation_share=0.5).publish()
    assert _splits_of_images(shipped.folder).items() >= swapped.items()
    # as killed between its renamings, with the code of another version
    shipped.folder.rename(part := shipped.folder.with_name(".crop.part"))
    (part / ".darkroom.json").write_text(json.dumps(json.loads((part / ".darkroom.json").read_text()) | {"inputs": ""}))
    SftDataset(made, recipe, PARTITIONS, validation_share=0.5).publish()
    assert _splits_of_images(shipped.folder).items() >= swapped.items()
    SftDataset(made, recipe, PARTITIONS, validation_share=0.25).publish()
    assert json.loads(marker.read_text())["validation_share"] == 0.25
    assert list(_splits_of_images(shipped.folder).values()).count("validation") == 1


def test_another_familys_rows_change_no_published_dataset(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS, validation_share=0.5).publish()
    before = {path: path.stat().st_mtime_ns for path in shipped.folder.iterdir()}
    in_train = {image for image, split in _splits_of_images(shipped.folder).items() if split == "train"}
    rows = [row for row in made.tables.read(KEY, Trajectory) if row.images[0].sha256 in in_train]
    assert len(rows) == 2
    made.tables.write(TableKey(("sft_dataset",), "rotation"), Trajectory, rows, [], inputs="", facts={})
    SftDataset(made, recipe, PARTITIONS, validation_share=0.5).publish()
    assert {path: path.stat().st_mtime_ns for path in shipped.folder.iterdir()} == before
    shutil.rmtree(shipped.folder)
    SftDataset(made, recipe, PARTITIONS, validation_share=0.5).publish()
    assert "validation" in {_splits_of_images(shipped.folder)[image] for image in in_train}, "it gets its share"


def test_a_split_that_is_gone_leaves_no_file(made: Workspace, recipe: Recipe) -> None:
    SftDataset(made, recipe, PARTITIONS, validation_share=0.5).publish()
    _, shipped = SftDataset(made, recipe, PARTITIONS, validation_share=0.0).publish()
    assert [path.name for path in shipped.folder.glob("*.parquet")] == ["train-00000-of-00001.parquet"]


def test_the_card_shows_where_the_rows_went(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    card = (shipped.folder / "README.md").read_text()
    assert "| samples | 10 |" in card
    assert "| drafts | 8 |  | 2 |" in card
    assert "| dataset | 4 | duplicate 4 |" in card
    assert "per accepted row" in card


def test_the_card_says_how_many_rows_came_out_the_same_again(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS, n_replayed=2).publish()
    card = (shipped.folder / "README.md").read_text()
    assert "Replay: 2 of 2 rows came out the same" in card
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    assert "Replay: not measured" in (shipped.folder / "README.md").read_text()


def test_the_card_is_written_from_facts(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    card = (shipped.folder / "README.md").read_text()
    for fact in (
        "4 trajectories with 8 images",
        "| written by the embedded oracle (a script that knows the truth; no model) | 4 |",
        "| licence CC0-1.0 | 4 |",
    ):
        assert fact in card
    for check in recipe.checks:
        assert f"`{check.name}`" in card
    assert "The last crop is at most 0.25 of the image" in card
    assert card.endswith("```\n")


def test_a_card_says_a_whole_sentence_of_every_check() -> None:
    for recipe in load_recipes().values():
        for check in recipe.checks:
            said = in_words(check)
            assert said.endswith((".", "0..1")), said
            assert not re.search("[A-Z]_[A-Z]", said), said


def test_a_family_without_trajectories_ships_nothing_and_leaves_nothing(
    made: Workspace, recipe: Recipe, small_source
) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS[:1]).publish()
    assert (shipped.folder / "README.md").exists()
    for partition in PARTITIONS:
        engine.intake(made, dataclasses.replace(small_source, n_rows=0, fingerprint="none"), 0, partition)
    report, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    assert (shipped.n_rows, report.n_out) == (0, 0)
    assert not shipped.folder.exists()
    assert SftDataset(made, recipe, PARTITIONS).publish()[1] == shipped


def test_a_licence_that_changed_reaches_the_shipped_rows_and_the_card(
    made: Workspace, recipe: Recipe, small_source
) -> None:
    SftDataset(made, recipe, PARTITIONS[:1]).publish()
    rows = tuple(dataclasses.replace(row, license="CC-BY-4.0") for row in small_source.rows(0))
    relicensed = dataclasses.replace(small_source, n_rows=0, extra=rows, fingerprint="relicensed")
    engine.intake(made, relicensed, 0, PARTITIONS[0])
    _, shipped = SftDataset(made, recipe, PARTITIONS[:1]).publish()
    assert set(datasets.load_dataset(str(shipped.folder), split="train")["license"]) == {"CC-BY-4.0"}
    assert "CC-BY-4.0" in (shipped.folder / "README.md").read_text()


def test_a_trajectory_whose_sample_is_gone_is_set_aside_and_the_rest_ships(
    made: Workspace, recipe: Recipe, small_source
) -> None:
    engine.intake(made, dataclasses.replace(small_source, n_rows=3, fingerprint="fewer"), 0, PARTITIONS[0])
    report, shipped = SftDataset(made, recipe, PARTITIONS[:1]).publish()
    assert (shipped.n_rows, report.reasons) == (1, {"stale": 3})


def test_a_folder_made_anew_is_not_answered_from_the_cache(made: Workspace, recipe: Recipe, small_source) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS[:1]).publish()
    assert len(datasets.load_dataset(str(shipped.folder), split="train")) == 4
    engine.intake(made, dataclasses.replace(small_source, n_rows=3, fingerprint="fewer"), 0, PARTITIONS[0])
    SftDataset(made, recipe, PARTITIONS[:1]).publish()
    assert len(datasets.load_dataset(str(shipped.folder), split="train")) == 1


def test_an_edited_card_is_restored(made: Workspace, recipe: Recipe) -> None:
    _, shipped = SftDataset(made, recipe, PARTITIONS).publish()
    card = (shipped.folder / "README.md").read_text()
    (shipped.folder / "README.md").write_text("mine")
    SftDataset(made, recipe, PARTITIONS).publish()
    assert (shipped.folder / "README.md").read_text() == card


def test_a_balanced_family_ships_as_many_of_every_kind(made: Workspace, recipe: Recipe) -> None:
    """Of four rows three are of one kind: two ship, one of each, and the others are rejects."""
    first = made.tables.read(TableKey(("crop", "trajectories"), PARTITIONS[0]), Trajectory)[0].trajectory_id
    balanced = dataclasses.replace(recipe, balanced_by=lambda row: "first" if row.trajectory_id == first else "other")
    report, shipped = SftDataset(made, balanced, PARTITIONS).publish()
    assert (shipped.n_rows, report.reasons) == (2, {"duplicate": 4, "not_selected": 2})
    assert first in datasets.load_dataset(str(shipped.folder), split="train")["trajectory_id"]


def test_a_quota_of_a_balanced_family_is_shared_by_its_kinds(made: Workspace, recipe: Recipe) -> None:
    kinds = iter(["a", "b", "a", "b"])
    by_row: dict[str, str] = {}
    balanced = dataclasses.replace(
        recipe, balanced_by=lambda row: by_row.setdefault(row.trajectory_id, next(kinds, "a"))
    )
    _, shipped = SftDataset(made, balanced, PARTITIONS, n_rows=2).publish()
    rows = datasets.load_dataset(str(shipped.folder), split="train")["trajectory_id"]
    assert sorted(by_row[row] for row in rows) == ["a", "b"]
