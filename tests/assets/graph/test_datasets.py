"""What ships of the families does not change with samples that only RL data is made of, and no row is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.assets.clusters.programs import LauncherResource, Program
from darkroom.assets.graph import datasets, training
from darkroom.assets.graph.datasets import drafted_partitions
from darkroom.assets.graph.resources import WorkspaceResource
from darkroom.pipelines.generation import engine
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.dataset_reader import dataset_files, origins_in, read_files
from darkroom.pipelines.records import Sample, Trajectory
from darkroom.pipelines.records.annotation import STAND_INS
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError
from tests.pipelines.publishing.shipping import PARTITION

ORACLE, RULE = (STAND_INS[name] for name in ("oracle", "embedded"))
UNKNOWN = dict.fromkeys(("written_by", "judged_by", "annotated_by"), "not stated")
ORIGINS = {"written_by": ORACLE, "judged_by": RULE, "annotated_by": "nobody"}


class Sums:
    """A source that no family works on."""

    name, n_shards, fingerprint = "sums", 1, "sums"

    def rows(self, shard: int):
        yield SourceRow("sum/0", (), "What is 40 + 2?", "42")


def test_partitions_without_trajectories_are_not_looked_at(shipped, workspace: Workspace) -> None:
    engine.intake(workspace, Sums(), 0, "sums-0000")
    assert workspace.tables.exists(TableKey(SAMPLES, "sums-0000"))
    recipes = list(load_recipes().values())
    assert drafted_partitions(workspace.tables, recipes, [PARTITION, "sums-0000", "none-0000"]) == [PARTITION]


def test_rows_whose_sample_is_gone_are_quarantined_and_none_is_lost(
    shipped, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.intake(workspace, Sums(), 0, PARTITION)  # none of the trajectories' samples
    monkeypatch.setenv("DARKROOM_HOME", str(workspace.home))
    monkeypatch.setattr(datasets, "_shards", lambda _: [PARTITION])
    asset = datasets.sft_dataset_asset([load_recipes()["crop"]])
    made = dg.materialize([asset], resources={"workspace": WorkspaceResource()})
    [check] = made.get_asset_check_evaluations()
    counts = {name: value.value for name, value in check.metadata.items()}
    assert check.passed
    assert counts == {"rows_in": 4, "rows_out": 0, "rejected": 0, "quarantined": 4}


@pytest.fixture
def published(shipped, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The page of ``sft_dataset`` with rows of ``crop``, and the same without code as rows of ``direct``."""
    monkeypatch.setenv("DARKROOM_HOME", str(workspace.home))
    monkeypatch.setattr(datasets, "_shards", lambda _: [PARTITION])
    tables, key = workspace.tables, TableKey(("crop", "trajectories"), PARTITION)
    rows = [replace(row, family="direct", rounds=()) for row in tables.read(key, Trajectory)]
    judge = {"judge": "embedded", "check": "consistency", "n_votes": 1, "calibration": None}
    for stage in STAGES:
        crop = tables.facts(TableKey(("crop", stage), PARTITION))
        facts = {**crop, "notes": {"judges": [judge] if stage == "verdicts" else []}}
        tables.write(TableKey(("direct", stage), PARTITION), Trajectory, rows, [], inputs="", facts=facts)
    recipes = [load_recipes()[family] for family in ("crop", "direct", "contrast")]
    made = dg.materialize([datasets.sft_dataset_asset(recipes)], resources={"workspace": WorkspaceResource()})
    return page_of(made)


def page_of(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    [event] = result.get_asset_materialization_events()
    metadata = event.step_materialization_data.materialization.metadata
    return {name: value.value for name, value in metadata.items()}


def test_the_page_says_who_wrote_and_judged_each_family(published: dict[str, object]) -> None:
    for what, who in ORIGINS.items():
        assert published[f"direct_{what}"] == who
        assert published[f"contrast_{what}"] == (UNKNOWN[what]), "no row"
    assert published["crop_written_by"] == ORACLE


def test_rows_without_code_have_a_preview_and_a_family_without_rows_has_none(published: dict[str, object]) -> None:
    rows = str(published["direct_preview"]).splitlines()[2:]
    assert len(rows) == 4
    assert all("data:image" in row and "| S" in row for row in rows)
    assert "contrast_preview" not in published


def test_families_whose_rows_have_no_licence_are_named_together_and_stop_no_other(
    published: dict[str, object], workspace: Workspace
) -> None:
    """Of ``crop`` no row has a licence, of ``direct``, which comes after it, one, of ``contrast`` none."""
    tables, key = workspace.tables, TableKey(SAMPLES, PARTITION)
    first, *others = tables.read(key, Sample)
    samples = [first, *(replace(sample, license="") for sample in others)]
    tables.write(key, Sample, samples, [], inputs="none", facts=tables.facts(key))
    crop, direct = (TableKey((family, "trajectories"), PARTITION) for family in ("crop", "direct"))
    rows = [row for row in tables.read(crop, Trajectory) if row.sample_id != first.sample_id]
    for name, of_family in ((crop, rows), (TableKey(("contrast", "trajectories"), PARTITION), rows)):
        of_family = [replace(row, family=name.asset[0]) for row in of_family]
        tables.write(name, Trajectory, of_family, [], inputs="none", facts=tables.facts(crop))
    recipes = [load_recipes()[family] for family in ("crop", "direct", "contrast")]
    asset = datasets.sft_dataset_asset(recipes)
    with pytest.raises(UserError, match=r"sft/crop would be empty: .*; sft/contrast would be empty"):
        dg.materialize([asset], resources={"workspace": WorkspaceResource()})
    assert tables.n_rows(direct) == 4
    assert [row["sample_id"] for row in rows_of(workspace, "direct")] == [first.sample_id]


def rows_of(workspace: Workspace, family: str) -> list[dict[str, object]]:
    return list(read_files(dataset_files(workspace.dataset("sft", family)), without=("images",)))


@pytest.mark.parametrize("name", ["sft_checkpoint", "grpo_checkpoint", "evaluation"])
def test_a_checkpoint_and_an_evaluation_say_whose_rows_they_are_from(
    published, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for program in ("sft_program", "grpo_program", "evaluation_program"):
        monkeypatch.setattr(training, program, lambda *_, **__: Program("tests.assets.little"))
    workspace.checkpoint("base_model.txt").parent.mkdir(parents=True)
    workspace.checkpoint("base_model.txt").write_text("model")
    (workspace.local / "evaluations" / "grpo").mkdir(parents=True)
    config = {"sft_checkpoint": {"families": ["direct"]}, "evaluation": {"datasets": ["sft/direct"]}}
    config["grpo_checkpoint"] = {"prompts": "sft", "family": "direct"}
    made = dg.materialize(
        [getattr(training, name)],
        resources={"workspace": WorkspaceResource(), "launcher": LauncherResource()},
        run_config={"ops": {name: {"config": config[name]}}},
    )
    assert ORIGINS.items() <= page_of(made).items()


def test_the_summary_and_its_json_say_who_wrote_judged_and_annotated(published, workspace: Workspace) -> None:
    told = json.loads(CliRunner().invoke(app, ["summary", "--json"]).stdout)
    assert told["origins"]["direct"] == ORIGINS
    said = " ".join(CliRunner().invoke(app, ["summary"]).stdout.split())
    assert f"Written by {ORACLE}: all datasets" in said
    assert f"Judged by {RULE}: direct" in said
    assert "Annotated by nobody: all datasets" in said


@pytest.mark.parametrize("marker", ["", "[]", "{", '{"origins": 7}', '{"origins": {"written_by": ""}}'])
def test_a_dataset_that_does_not_say_who_wrote_it_is_not_guessed(tmp_path: Path, marker: str) -> None:
    (tmp_path / ".darkroom.json").write_text(marker)
    assert origins_in([tmp_path, tmp_path / "none"]) == UNKNOWN
