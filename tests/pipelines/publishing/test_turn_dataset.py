"""Three datasets from the drafts of one turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.generation.flywheel import write_turn
from darkroom.pipelines.generation.recipes import load_recipes, without_hints
from darkroom.pipelines.publishing.dataset_reader import dataset_files
from darkroom.pipelines.publishing.turn_dataset import Keeps, TurnDataset
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource
from tests.pipelines.students import opened

WRONG = {"kept": [], "executed": ["answer_matches"], "unfiltered": ["answer_matches", "executes"]}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.from_environment({"DARKROOM_HOME": str(tmp_path_factory.mktemp("turn"))}) as workspace:
        write_turn(workspace, load_recipes()["crop"], SmallSource(), 0, "turn-1", student=opened([]))
        yield workspace


def publish(workspace: Workspace, keeps: Keeps) -> tuple[Path, list[dict[str, object]]]:
    report, shipped = TurnDataset(workspace, without_hints(load_recipes()["crop"]), ["turn-1"], keeps=keeps).publish()
    rows = pq.read_table(dataset_files(shipped.folder)[0]).to_pylist()
    assert report.n_in == report.n_out + report.n_rejected
    return shipped.folder, rows


@pytest.mark.parametrize("keeps", WRONG)
def test_a_dataset_has_the_rows_that_it_is_named_for(written: Workspace, keeps: Keeps) -> None:
    folder, rows = publish(written, keeps)
    assert folder == written.dataset("flywheel", f"turn-1-{keeps}")
    assert sorted(row["source_row"] for row in rows) == ["row/0", "row/2", "row/3"][: len(WRONG[keeps]) + 1]


@pytest.mark.parametrize("keeps", WRONG)
def test_rows_carry_the_checks_that_they_failed(written: Workspace, keeps: Keeps) -> None:
    _, rows = publish(written, keeps)
    failed = {check["name"] for row in rows for check in row["checks"] if not check["passed"]}
    assert failed & {"answer_matches", "executes"} == set(WRONG[keeps])


def test_only_the_ablations_cards_say_that_rows_failed(written: Workspace) -> None:
    cards = {keeps: (publish(written, keeps)[0] / "README.md").read_text() for keeps in WRONG}
    assert "every row passed every check below" in cards["kept"]
    for keeps in ("executed", "unfiltered"):
        assert "For ablation only" in cards[keeps]
        assert "every row passed every check" not in cards[keeps]


def test_the_familys_own_dataset_has_no_row_of_a_turn(written: Workspace) -> None:
    publish(written, "kept")
    assert not written.dataset("sft", "crop").exists()
