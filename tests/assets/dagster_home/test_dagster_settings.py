"""The bundled settings of Dagster: what they switch on, and where they are written."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.instance.config import dagster_instance_config

from darkroom.assets.clusters.run_launcher import PlacedRunLauncher
from darkroom.assets.clusters.worker import LocalRunLauncher
from darkroom.assets.dagster_home.instance import open_instance, prepare_dagster_home, refresh_dagster
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError
from tests.ports import free_port

FORMER = """telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 2
"""


def here_only() -> str:
    """The file of before runs could be elsewhere."""
    now = (files("darkroom.assets") / "dagster.yaml").read_text()
    launcher = "run_launcher: {module: assets.runs.worker, class: LocalRunLauncher}"
    return now.replace(
        "run_launcher: {module: darkroom.assets.clusters.run_launcher, class: PlacedRunLauncher}", launcher
    ).replace("is gone; runs elsewhere need PostgreSQL (docs/scale.md)\n", "is gone\n")


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> Path:
    """Where the workspace's instance is; the variable that is set goes with the test."""
    home = workspace.home / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return home


@pytest.mark.parametrize("name", ["dagster.yaml", "dagster_team.yaml"])
def test_the_settings_repeat_lost_runs_and_no_failed_stage(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", "postgresql://dagster:x@127.0.0.1/dagster")
    (tmp_path / "dagster.yaml").write_text((files("darkroom.assets") / name).read_text())
    settings, _ = dagster_instance_config(str(tmp_path))  # raises for what Dagster does not know
    assert settings["run_monitoring"]["enabled"]
    assert settings["run_monitoring"]["start_timeout_seconds"] >= 600, "a loaded machine takes minutes to start a run"
    assert settings["run_retries"]["max_retries"] > 0
    assert not settings["run_retries"]["retry_on_asset_or_op_failure"]
    limits = settings["concurrency"]
    # by op, a run that is killed would keep its place for ever
    assert limits["pools"]["granularity"] == "run"
    assert limits["pools"]["default_limit"] < limits["runs"]["max_concurrent_runs"], "a backfill would take all places"


def test_an_instance_with_the_settings_looks_after_its_runs(workspace: Workspace, own_home: Path) -> None:
    prepare_dagster_home(workspace)
    with dg.DagsterInstance.get() as instance:
        assert isinstance(instance.run_launcher, PlacedRunLauncher)
        assert instance.run_retries_enabled


@pytest.mark.parametrize(
    ("before", "is_replaced"),
    [(FORMER, True), (here_only(), True), (FORMER.replace("2", "9"), False)],
    ids=["former", "before other places", "own"],
)
def test_settings_of_an_earlier_version_are_replaced_and_those_of_users_are_not(
    workspace: Workspace, own_home: Path, before: str, is_replaced: bool
) -> None:
    own_home.mkdir(parents=True)
    (own_home / "dagster.yaml").write_text(before)
    prepare_dagster_home(workspace)
    assert ((own_home / "dagster.yaml").read_text() != before) == is_replaced


@pytest.mark.parametrize("module", ["assets.runs.places", "darkroom.assets.runs.places"])
@pytest.mark.parametrize("edited", ["", "# ours\n"], ids=["as written", "edited"])
def test_modules_that_settings_of_an_earlier_version_name_get_their_present_names(
    workspace: Workspace, own_home: Path, module: str, edited: str
) -> None:
    bundled = (files("darkroom.assets") / "dagster.yaml").read_text()
    own_home.mkdir(parents=True)
    settings = own_home / "dagster.yaml"
    settings.write_text(edited + bundled.replace("darkroom.assets.clusters.run_launcher", module))
    settings.chmod(0o600)
    prepare_dagster_home(workspace)
    assert settings.read_text() == edited + bundled
    assert not edited or settings.stat().st_mode & 0o777 == 0o600
    with open_instance() as instance:
        assert isinstance(instance.run_launcher, PlacedRunLauncher)


def test_a_launcher_of_this_machine_keeps_its_class(workspace: Workspace, own_home: Path) -> None:
    own_home.mkdir(parents=True)
    settings = own_home / "dagster.yaml"
    settings.write_text("run_launcher: {module: assets.runs.worker, class: LocalRunLauncher}  # ours\n")
    prepare_dagster_home(workspace)
    with open_instance() as instance:
        assert isinstance(instance.run_launcher, LocalRunLauncher)


def test_without_an_instance_there_is_nothing_to_refresh(workspace: Workspace, own_home: Path) -> None:
    refresh_dagster(workspace)
    assert not own_home.exists()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "exactly one of"),
        ("postgres//db/dagster", "Could not parse SQLAlchemy URL"),
        ("postgresql://dagster:x@127.0.0.1:{port}/dagster", "Connection refused"),
    ],
    ids=["empty", "no URL", "nobody there"],
)
def test_a_history_that_cannot_be_opened_is_one_line(
    url: str, reason: str, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # Dagster tries five times, with pauses
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url.format(port=free_port()))
    own_home.mkdir(parents=True)
    (own_home / "dagster.yaml").write_text((files("darkroom.assets") / "dagster_team.yaml").read_text())
    with pytest.raises(UserError, match="history cannot be opened") as caught:
        open_instance()
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
