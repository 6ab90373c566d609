"""Rows of unknown licence do not ship by default; whatever happens to them is said where it happens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes import Recipe, load_recipes
from darkroom.pipelines.models.policies import oracle_policy
from darkroom.pipelines.publishing.dataset_reader import dataset_files, read_files
from darkroom.pipelines.publishing.hub import HubDataset
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError
from tests.conftest import SmallSource

SHIPS = {"DARKROOM_SHIP_UNLICENSED": "1"}
RECIPE = load_recipes()["crop"]


@dataclass(frozen=True)
class Unlicensed(SmallSource):
    """The rows below ``n_licensed`` have a licence, the others none."""

    n_licensed: int = 0

    def rows(self, shard: int) -> Iterator[SourceRow]:
        for n, row in enumerate(super().rows(shard)):
            yield row if n < self.n_licensed else replace(row, license="")


def build(home: Path, recipe: Recipe, source: SmallSource) -> None:
    with Workspace.from_environment({"DARKROOM_HOME": str(home)}) as workspace:
        engine.intake(workspace, source, 0, "small-0000")
        family = Family(workspace, recipe, "small-0000")
        for stage in (family.draft, family.run):
            stage(oracle_policy(recipe.family, revision=recipe.digest))
        family.check()
        family.keep()


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """By the number of samples with a licence: of four, three and none have one."""
    homes = {n: tmp_path_factory.mktemp(f"licensed_{n}") for n in (4, 0)}
    for n, home in homes.items():
        build(home, RECIPE, Unlicensed(n_licensed=n))
    return homes


@pytest.fixture
def home(homes: dict[int, Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return Path(shutil.copytree(homes[request.param], tmp_path / "home"))


def dataset(home: Path, **environment: str) -> SftDataset:
    workspace = Workspace.from_environment({"DARKROOM_HOME": str(home), **environment})
    return SftDataset(workspace, RECIPE, ["small-0000"])


some, none = (pytest.mark.parametrize("home", [n], indirect=True) for n in (4, 0))


@some
def test_rows_without_a_licence_are_rejects_that_the_card_counts(home: Path) -> None:
    made = dataset(home)
    report, shipped = made.publish()
    assert (report.n_out, report.reasons) == (3, {"licence_unknown": 1})
    (rejected,) = made.workspace.tables.read_rejects(TableKey(("sft_dataset",), "crop"))
    assert "state `license` in the source's file" in rejected.evidence
    card = (shipped.folder / "README.md").read_text()
    assert "Left out: 1 rows of unknown licence (`licence_unknown`); state `license`" in card
    assert "| dataset | 3 | licence_unknown 1 | |" in card
    assert HubDataset(Path(shipped.folder)).problems() == []


@some
def test_by_the_setting_they_ship_and_the_card_says_so(home: Path) -> None:
    report, shipped = dataset(home, **SHIPS).publish()
    assert (report.n_out, report.reasons) == (4, {})
    card = (shipped.folder / "README.md").read_text()
    assert "**No licence is known of 1 rows**, which ship by the setting `DARKROOM_SHIP_UNLICENSED`." in card
    assert HubDataset(Path(shipped.folder)).problems() == []
    assert dataset(home).publish()[0].n_out == 3, "the setting is no part of the dataset's inputs otherwise"


@some
def test_a_dataset_of_an_earlier_version_that_has_such_rows_is_not_uploaded(home: Path) -> None:
    _, shipped = dataset(home, **SHIPS).publish()
    marker = shipped.folder / ".darkroom.json"
    facts = json.loads(marker.read_text())
    assert facts.pop("n_unlicensed") == 1
    marker.write_text(json.dumps(facts))
    [problem] = HubDataset(Path(shipped.folder)).problems()
    assert problem.startswith("rows of unknown licence, which no longer ship: state `license`")


@none
def test_a_dataset_that_would_be_empty_stops_with_the_remedy_and_the_earlier_one_stays(home: Path) -> None:
    _, shipped = dataset(home, **SHIPS).publish()
    for _ in range(2):  # the second time from the finished table
        with pytest.raises(UserError) as stopped:
            dataset(home).publish()
        assert str(stopped.value) == (
            "sft/crop would be empty: no licence is known of 4 rows; state `license` in the source's file (or "
            "campaign.yaml), or set DARKROOM_SHIP_UNLICENSED=1"
        )
    assert len(list(read_files(dataset_files(shipped.folder)))) == 4


@none
def test_stating_the_licence_mends_it_without_a_call_of_the_policy(home: Path) -> None:
    with pytest.raises(UserError):
        dataset(home).publish()
    engine.intake(dataset(home).workspace, replace(SmallSource(), fingerprint="licensed"), 0, "small-0000")
    assert dataset(home).publish()[0].n_out == 4
