"""The code location: what is in it, and that a new family needs one file and its prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.clusters.placement import TRAIN
from darkroom.assets.definitions import ANNOTATION, DATASETS, RELEASED, RL, RL_DATASET, SAMPLES, SFT, definitions
from darkroom.assets.graph.families import stage_key
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.released import all_recipes
from darkroom.pipelines.models.policies import oracles
from darkroom.pipelines.records import Trajectory
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, graph, materialize_shard

RECIPES = Path(__file__).parent / "recipe"


def keys(defs: dg.Definitions) -> set[str]:
    return {key.to_user_string() for key in defs.resolve_all_asset_keys()}


def test_the_definitions_are_loadable_and_hold_the_jobs_that_commands_run() -> None:
    defs = definitions()
    dg.Definitions.validate_loadable(defs)
    jobs = {job.name for job in defs.resolve_all_job_defs()}
    assert {SAMPLES, SFT, RELEASED, DATASETS, RL, RL_DATASET, TRAIN, ANNOTATION} <= jobs


def test_every_asset_of_the_graph_is_there() -> None:
    stages = ("drafts", "runs", "verdicts", "trajectories", "rejects")
    family = {f"{family}/{stage}" for family in all_recipes() for stage in stages}
    training = {"sft_dataset", "street_signs", "base_model", "sft_checkpoint", "grpo_checkpoint", "evaluation"}
    annotation = {
        "annotation_pool",
        "pre_annotations",
        "annotations",
        "cross_checks",
        "accepted_annotations",
        "refused_submissions",
    }
    rl = {"rl_candidates", "checked_labels", "pass_rates", "tool_necessity", "suitability_votes", "suitability_labels"}
    others = {"samples", "expert_reviews", "rl_dataset"}
    assert keys(graph()) == others | family | annotation | training | rl


def test_every_asset_is_described_grouped_and_owned() -> None:
    for spec in graph().resolve_all_asset_specs():
        assert spec.description, spec.key
        assert spec.group_name != "default", spec.key
        assert spec.owners, spec.key


def test_every_asset_names_its_code() -> None:
    for spec in graph().resolve_all_asset_specs():
        references = spec.metadata["dagster/code_references"].code_references
        assert all(Path(reference.file_path).exists() for reference in references), spec.key
        own = {Path(reference.file_path).name for reference in references}
        if spec.group_name in all_recipes() and spec.key.path[-1] in STAGES:
            assert own == {"families.py", all_recipes()[spec.group_name].file.name}
        else:
            assert own <= {"families.py", "rl.py", "datasets.py", "annotation.py", "training.py"}


def test_every_family_is_a_group_that_the_graph_can_close() -> None:
    groups = {spec.group_name for spec in graph().resolve_all_asset_specs()}
    assert groups == {"source", "datasets", "annotation", "train", "rl", "demo"} | set(all_recipes())


def test_every_stage_has_a_blocking_conservation_check() -> None:
    resolved = graph().resolve_asset_graph()
    checked = {key.asset_key.to_user_string() for key in resolved.asset_check_keys if resolved.get(key).blocking}
    assert checked >= {"samples", "crop/drafts", "crop/runs", "crop/verdicts", "crop/trajectories", "crop/rejects"}


def test_stages_that_use_endpoints_or_the_sandbox_are_in_their_pools() -> None:
    pools = {
        stage: graph().resolve_assets_def(dg.AssetKey(stage.split("/"))).op.pool
        for stage in ("samples", "crop/drafts", "crop/runs", "crop/rejects", "pass_rates", "tool_necessity")
    }
    assert pools == {
        "samples": None,
        "crop/drafts": "endpoints",
        "crop/runs": "sandbox",
        "crop/rejects": None,
        "pass_rates": "endpoints",
        "tool_necessity": "sandbox",
    }


def test_one_file_and_one_prompt_make_a_family_of_assets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_RECIPES", str(RECIPES))
    assert {"shout/drafts", "shout/runs", "shout/verdicts", "shout/trajectories", "shout/rejects"} <= keys(
        definitions()
    )


@pytest.fixture
def shout_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that brings the oracle of ``shout``."""
    package = tmp_path / "shout_oracle-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shout-oracle\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[darkroom.oracles]\nshout = _shout_oracle:script\n")
    for folder in (tmp_path, RECIPES):
        monkeypatch.syspath_prepend(folder)
    oracles.cache_clear()
    yield
    oracles.cache_clear()


@pytest.mark.e2e
@pytest.mark.usefixtures("shout_oracle")
def test_an_added_family_materialises_beside_the_others_with_an_oracle_that_a_package_brings(
    signs: Path, workspace: Workspace, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARKROOM_RECIPES", str(RECIPES))
    stages = [stage_key(family, stage) for family in ("crop", "shout") for stage in (*STAGES, "rejects")]
    assert materialize_shard(instance, SFT, asset_selection=stages).success
    kept = {
        family: workspace.tables.read(TableKey((family, "trajectories"), PARTITION), Trajectory)
        for family in ("crop", "shout")
    }
    assert {family: len(rows) for family, rows in kept.items()} == {"crop": 4, "shout": 5}
    assert kept["shout"][0].answer == "S0X"
