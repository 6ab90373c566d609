"""The RL assets when they are materialised: counts, plots, votes, the dataset, and the same again."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.assets.definitions import RL, RL_DATASET, definitions
from darkroom.assets.graph.resources import PolicyResource
from darkroom.assets.pages.metadata import bars
from darkroom.assets.terminal import shown_by
from darkroom.pipelines.models.policies import OpenAIPolicy
from darkroom.pipelines.publishing.rl_dataset import KEY
from darkroom.pipelines.records import RLRow
from darkroom.pipelines.records.annotation import SIMULATED, asked
from darkroom.pipelines.rl.facts import STAGES
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, materialize_shard

pytestmark = pytest.mark.e2e

OPS = {"suitability_labels": {"tie": "yes"}, "pass_rates": {"max_rate": 1.0}}


def materialize(instance: dg.DagsterInstance, job: str, partition: str | None = None, **ops) -> dict[str, dict]:
    """What the assets' pages show, by asset."""
    config = {"ops": {name: {"config": config} for name, config in ops.items()}}
    if partition:
        result = materialize_shard(instance, job, partition, run_config=config)
    else:
        result = definitions().resolve_job_def(job).execute_in_process(instance=instance, run_config=config)
    made = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
    assert all(check.passed for check in result.get_asset_check_evaluations())
    return {one.asset_key.to_user_string(): {name: value.value for name, value in one.metadata.items()} for one in made}


SHOWN: list[str] = []


@pytest.fixture
def pages(signs: Path, instance: dg.DagsterInstance) -> dict[str, dict]:
    with shown_by(lambda line, seconds_left: SHOWN.append(line)):
        return materialize(instance, RL, PARTITION, **OPS) | materialize(instance, RL_DATASET)


def test_the_pages_show_counts_who_was_asked_and_plots_and_the_same_again_does_nothing(
    pages, workspace: Workspace, instance: dg.DagsterInstance
):
    assert set(pages) == {"samples", "rl_dataset", *STAGES}
    assert pages["rl_candidates"]["rows_in"] == 5
    for asset, role in (("rl_candidates", "judge"), ("pass_rates", "student")):
        assert pages[asset][f"asked_{role}"] == "the embedded oracle (a script that knows the truth; no model)"
    origins = {what: pages["rl_dataset"][what] for what in ("written_by", "annotated_by")}
    assert origins == {"written_by": "signs", "annotated_by": "nobody"}
    judged_by = pages["rl_dataset"]["judged_by"]
    assert f"label compared with answers of: {asked('oracle')}; pass rate, difficulty: {SIMULATED}; " in judged_by
    assert pages["suitability_votes"]["rows_in"] == 0  # every sign is in an image
    for asset, plot in (
        ("pass_rates", "plot_pass_rates"),
        ("suitability_votes", "plot_votes"),
        ("rl_dataset", "plot_mix"),
    ):
        assert pages[asset][plot].startswith("![](data:image/png;base64,"), asset
    assert "█" in pages["pass_rates"]["pass_rates"]
    assert "text" in pages["rl_candidates"]["graders"]
    assert {"prior", "accuracy_forced", "accuracy_forbidden"} <= pages["tool_necessity"].keys()
    assert {"by_category", "by_difficulty", "by_grader", "by_source"} <= pages["rl_dataset"].keys()
    rows = workspace.tables.read(KEY, RLRow)
    assert len(rows) == pages["rl_dataset"]["rows_out"] == pages["pass_rates"]["rows_out"]
    assert all(row.pass_rate is not None and row.necessity is not None for row in rows)
    assert any(said.startswith("pass_rates: 5 of 5 rows (100%), ") for said in SHOWN)
    again = materialize(instance, RL, PARTITION, **OPS) | materialize(instance, RL_DATASET)
    assert {name: page["reused"] for name, page in again.items()} == dict.fromkeys(again, True)


def test_the_command_does_the_same_as_the_jobs_and_names_an_unknown_source(signs: Path):
    said = CliRunner().invoke(app, ["rl", "signs", "--rows", "2", "--quota", "signs=3"])
    assert said.exit_code == 0, said.output
    assert "RL rows              2 in" in said.output
    for part in ("RL data, stage by stage", "Right answers", "difficulty"):
        assert part in said.output, part
    unknown = CliRunner().invoke(app, ["rl", "nothing"])
    assert unknown.exit_code == 1
    assert "there is no source 'nothing'" in unknown.output
    assert CliRunner().invoke(app, ["rl", "signs", "--quota", "signs"]).exit_code == 2


@pytest.mark.parametrize("command", [["rl", "signs"], ["annotate", "finish"]], ids=" ".join)
def test_a_quota_of_a_source_that_is_not_there_is_refused(signs: Path, command: list[str]):
    refused = CliRunner().invoke(app, [*command, "--quota", "nothing=3"], env={"COLUMNS": "300"})
    assert refused.exit_code == 2
    assert re.search(r"SOURCE one of .*\bsigns\b.*\bannotated; found 'nothing=3'", refused.output)
    allowed = CliRunner().invoke(app, ["annotate", "finish", "--quota", "annotated=3"])
    assert allowed.exit_code == 1, allowed.output  # there is no campaign


def test_the_student_is_a_role_of_its_own(workspace: Workspace):
    environment = {
        "DARKROOM_POLICY": "openai",
        "DARKROOM_POLICY_URL": "http://127.0.0.1:1/v1",
        "DARKROOM_POLICY_MODEL": "teacher",
        "DARKROOM_STUDENT_MODEL": "student-7b",
        "DARKROOM_STUDENT_SEND_N": "0",
    }
    policy = PolicyResource.from_environment("STUDENT", environment).for_rl("pass_rates", workspace)
    assert isinstance(policy, OpenAIPolicy)
    assert (policy.identity.model, policy.gives_several) == ("student-7b", False)


def test_bars_are_as_long_as_their_counts():
    lines = bars({"a": 4, "b": 1, "c": 0}).value.splitlines()[1:-1]
    assert [line.count("█") for line in lines] == [24, 6, 0]
