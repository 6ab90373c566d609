"""Decisions of shipped trajectories: which become pivots, what is rewarded at their place, and how they leave."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.publishing.audit import audit
from darkroom.pipelines.publishing.dataset_reader import dataset_files, read_files
from darkroom.pipelines.publishing.layouts import LayoutError, layout_of
from darkroom.pipelines.publishing.layouts.export_source import find_source
from darkroom.pipelines.publishing.layouts.exporter import export
from darkroom.pipelines.publishing.pivots.dataset import KEY, PivotDataset
from darkroom.pipelines.publishing.pivots.rows import StepReward, step_rewards
from darkroom.pipelines.records import from_row
from darkroom.pipelines.records.pivots import Action, Pivot
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.publishing.pivots.shipped_pivots import FAMILIES, ship_pivots
from tests.pipelines.publishing.shipping import PARTITION, edit_rows

FILE = "/mnt/data/temp_processed_images/look.png"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("pivots")
    ship_pivots(home)
    return home


@pytest.fixture
def made(home: Path, workspace: Workspace) -> Workspace:
    """A copy of ``home`` for each test."""
    shutil.copytree(home, workspace.home)
    return workspace


def dataset(workspace: Workspace) -> PivotDataset:
    return PivotDataset(workspace, FAMILIES, [PARTITION])


def rows(workspace: Workspace, **columns: Any) -> list[dict[str, Any]]:
    """The shipped rows with these values."""
    every = read_files(dataset_files(dataset(workspace).folder))
    return [row for row in every if all(row[name] == value for name, value in columns.items())]


def look(body: str) -> str:
    """A turn in the protocol thyme whose code changes the image."""
    code = f"image = Image.open(image_path).convert('RGB')\n{body}\nimage.save({FILE!r})\nprint({FILE!r})"
    return Thyme().write_round("I look closer.", code, first=True)


def test_every_decision_is_a_pivot_or_a_reject_with_its_reason(made: Workspace) -> None:
    report, shipped = dataset(made).publish()
    assert report.reused
    # four rows crop and answer; four crop beside the target, then crop it, then answer
    assert (report.n_in, report.n_out, shipped.n_rows) == (20, 16, 16)
    assert report.reasons == {"check_failed: target": 4}
    pivots = made.tables.read(KEY, Pivot)
    assert {(pivot.family, pivot.goal, len(pivot.rounds)) for pivot in pivots} == {
        ("crop", "target", 0),
        ("crop", "answer", 1),
        ("error_correction", "target", 1),
        ("error_correction", "answer", 2),
    }


def test_another_rollouts_wrong_crop_after_the_same_prefix_is_a_rejected_action(made: Workspace) -> None:
    pivots = [pivot for pivot in made.tables.read(KEY, Pivot) if pivot.goal == "target" and not pivot.rounds]
    assert [[other.family for other in pivot.rejected] for pivot in pivots] == [["error_correction"]] * 4
    assert {other.flaw for pivot in pivots for other in pivot.rejected} == {"target_cut"}
    assert all(other.action.code != pivot.action.code for pivot in pivots for other in pivot.rejected)


def test_splits_are_those_of_the_trajectories(made: Workspace) -> None:
    def names(folder: Path, split: str) -> set[str]:
        return {row["sample_id"] for row in read_files(dataset_files(folder, split=split))}

    for split in ("train", "validation"):
        of_rows = set().union(*(names(made.dataset("sft", family), split) for family in FAMILIES))
        assert names(dataset(made).folder, split) == of_rows
        assert of_rows
    assert not names(dataset(made).folder, "train") & names(dataset(made).folder, "validation")


def test_the_reward_is_measured_on_what_the_turn_shows(made: Workspace) -> None:
    row = rows(made, goal="target", family="crop")[0]
    x1, y1, x2, y2 = (row["boxes"][0][side] for side in ("x1", "y1", "x2", "y2"))
    reward = StepReward.of(row)
    near = (max(0, x1 - 20), max(0, y1 - 20), x2 + 20, y2 + 20)
    assert reward(look(f"image = image.crop({near})")).passed
    expected = {
        look("pass"): "unchanged",
        look(f"image = image.crop(({x1}, {y1}, {(x1 + x2) // 2}, {y2}))"): "target_cut",
        look("image = image.resize((image.width * 2, image.height * 2))"): "crop_too_large",
        look("raise ValueError"): "program_failed",
        Thyme().write_round("I look.", "print(1)", first=True): "no_image",
        Thyme().write_answer("I know.", row["gold"], first=True): "no_program",
        "no tags at all": "malformed_turn",
    }
    checks = {turn: reward(turn) for turn in expected}
    assert {turn: check.reason for turn, check in checks.items()} == expected
    assert not any(check.passed for check in checks.values())


def test_code_sees_what_the_prefix_has_left(made: Workspace) -> None:
    row = rows(made, goal="target", family="error_correction")[0]
    assert row["rounds"]
    reward = StepReward.of(row)
    assert reward.of_action(from_row(Action, row["action"])).passed
    repeated = reward.of_action(Action("Once more.", row["rounds"][0]["code"], ""))
    assert repeated.reason == "unchanged"


def test_at_an_answer_only_the_answer_is_rewarded(made: Workspace) -> None:
    row = rows(made, goal="answer")[0]
    reward = StepReward.of(row)
    assert reward.of_action(Action("It says so.", "", row["gold"])).passed
    assert reward.of_action(Action("It says so.", "", "nothing of it")).reason == "wrong_answer"
    assert reward.of_action(Action("Once more.", "print(1)", "")).reason == "has_program"
    assert reward.of_action(Action("", "", "")).reason == "wrong_answer"


def test_nothing_is_made_again_for_unchanged_inputs(made: Workspace) -> None:
    folder = dataset(made).folder
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    report, _ = dataset(made).publish()
    assert report.reused
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_the_same_decisions_give_the_same_bytes(made: Workspace) -> None:
    folder = dataset(made).folder
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    made.tables.path(KEY).unlink()
    report, _ = dataset(made).publish()
    assert not report.reused
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_audit_executes_and_rewards_every_action_again(made: Workspace) -> None:
    report = audit([dataset(made).folder])
    assert not report.findings
    assert report.checked["reward"] == 16


def test_the_audit_tells_a_verified_action_that_has_no_reward(made: Workspace) -> None:
    folder = dataset(made).folder
    for file in folder.glob("validation-*.parquet"):
        file.unlink()

    def spoil(row: dict[str, Any]) -> None:
        if row["rejected"]:
            row["action"] = row["rejected"][0]["action"]

    n_paired = sum(bool(row["rejected"]) for row in read_files(dataset_files(folder)))
    edit_rows(folder, spoil)
    assert audit([folder]).kinds["reward: target"] == n_paired > 0


def test_pairs_and_prompts_are_exported_for_trl(made: Workspace, tmp_path: Path) -> None:
    folder = dataset(made).folder
    source = find_source("pivots", Path(), split="train", named={"pivots": folder})
    n_rows, n_paired = len(rows(made)), 0
    for name in ("trl_steps", "trl_dpo"):
        exported = export(source, layout_of(name, "pivots"), tmp_path / name)
        records = pq.read_table(tmp_path / name / "train.parquet").to_pylist()
        assert len(records) == exported.n_rows
        assert all(record["prompt"][-1]["role"] == "user" for record in records)
        n_images = [
            sum(part["type"] == "image" for turn in record["prompt"] for part in turn["content"]) for record in records
        ]
        assert n_images == [len(record["images"]) for record in records]
        n_paired = exported.n_rows
    assert 0 < n_paired < n_rows
    assert exported.reasons == {"no_pair": len(list(source.rows())) - n_paired}
    texts = [
        (record["chosen"][0]["content"][0]["text"], record["rejected"][0]["content"][0]["text"]) for record in records
    ]
    assert all(chosen != rejected and "<code>" in chosen and "<code>" in rejected for chosen, rejected in texts)


def test_a_layout_of_trajectories_takes_no_pivots(made: Workspace, tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="trl_steps, trl_dpo for pivots"):
        layout_of("trl_turns", "pivots")
    with pytest.raises(LayoutError, match="Run: darkroom pivots"):
        find_source("pivots", Path(), split="train", named={"pivots": tmp_path})


def test_the_reward_function_takes_turns_by_their_pivot(made: Workspace) -> None:
    chosen = rows(made, goal="answer")[:2]
    reward = step_rewards(dataset(made).folder)
    right, wrong = (Thyme().write_answer("I see.", text, first=False) for text in (chosen[0]["gold"], "no"))
    completions = [
        [{"role": "assistant", "content": right}],
        [{"role": "assistant", "content": [{"type": "text", "text": wrong}]}],
    ]
    assert reward(completions=completions, pivot_id=[row["pivot_id"] for row in chosen], goal=["", ""]) == [1.0, 0.0]


def test_the_card_counts_what_is_there(made: Workspace) -> None:
    card = (dataset(made).folder / "README.md").read_text()
    assert "| goal target | 8 |" in card
    assert "| with a rejected action | 4 |" in card
    assert "4 in all, by flaw: target_cut 4." in card
