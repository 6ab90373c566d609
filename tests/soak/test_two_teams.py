"""Two teams with models and Dagsters of their own build one source in one home at the same time."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import add_signs
from tests.conftest import SmallSource
from tests.drafting import DECISION
from tests.e2e.team import ROOT, command, tables_of
from tests.mock_endpoint import MockEndpoint


@pytest.fixture
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint() as up:
        up.reset(plan=DECISION, seconds=0.2)
        yield up


@pytest.fixture
def environment(clean_environment: dict[str, str], endpoint: MockEndpoint) -> dict[str, str]:
    settings = {"DARKROOM_POLICY": "openai", "DARKROOM_POLICY_URL": endpoint.url, "DARKROOM_POLICY_CONCURRENCY": "1"}
    return clean_environment | settings


def team_of(environment: dict[str, str], home: Path, model: str) -> dict[str, str]:
    dagster = {"DAGSTER_HOME": str(home / f"dagster_{model}")}
    return environment | dagster | {"DARKROOM_HOME": str(home), "DARKROOM_POLICY_MODEL": model}


def build(settings: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(), cwd=ROOT, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_both_end_well_or_say_in_one_line_that_each_needs_a_home(
    environment: dict[str, str], endpoint: MockEndpoint, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    with Workspace.from_environment(team_of(environment, shared, "any")) as workspace:
        add_signs(workspace, SmallSource(), tmp_path / "signs")
    teams = [team_of(environment, shared, model) for model in ("a", "b")]
    for building in [build(team) for team in teams]:
        _, said = building.communicate()
        if building.returncode:
            warning, error = said.splitlines()
            assert warning.startswith("warning: ")  # the endpoint says that it is another model
            assert "DARKROOM_HOME" in error
            assert "signs-0000" in error

    for team in teams:
        building = build(team)
        _, said = building.communicate()
        assert building.returncode == 0, said
        alone = tmp_path / team["DARKROOM_POLICY_MODEL"]
        shutil.copytree(shared / "sources", alone / "sources")
        ledger = {"DARKROOM_LEDGER": f"sqlite:///{shared / 'ledger.sqlite'}"}
        (undisturbed := build(team_of(environment, alone, team["DARKROOM_POLICY_MODEL"]) | ledger)).communicate()
        assert undisturbed.returncode == 0
        assert tables_of(team) == tables_of(team_of(environment, alone, "any"))
    assert set(endpoint.counts()["served"].values()) == {1}, "an answer was paid twice"
