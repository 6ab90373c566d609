"""What the terminal shows while a run goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import dagster as dg
import pytest
from PIL import Image
from rich.console import Console

from darkroom.assets.builds.jobs import MaterializationFailed, materialize
from darkroom.assets.terminal import progress_sink
from darkroom.assets.terminal.run_lines import STATUS_SECONDS, FirstTrajectory
from darkroom.pipelines.storage.workspace import Workspace

SECONDS = 60.0


def printed(instance: dg.DagsterInstance, *assets: dg.AssetsDefinition) -> str:
    """What a file gets of a run of these assets."""
    output = StringIO()
    job = dg.Definitions(assets=list(assets), jobs=[dg.define_asset_job("both")]).resolve_job_def("both")
    OUTPUTS.append(output)
    materialize(job, instance, Console(file=output, width=200), on_asset=lambda _: None)
    return output.getvalue()


OUTPUTS: list[StringIO] = []


def wait_for(text: str) -> None:
    deadline = time.monotonic() + SECONDS
    while text not in OUTPUTS[-1].getvalue():
        assert time.monotonic() < deadline, OUTPUTS[-1].getvalue()
        time.sleep(0.01)


@dg.asset
def first() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"rows_in": 3, "rows_out": 2, "rejected": 1})


@dg.asset(deps=[first])
def second() -> None:
    wait_for("first")
    wait_for("1 of 2 assets, about")


@dg.asset(deps=[first])
def long() -> None:
    show = progress_sink.get()
    assert show is not None
    show("long: 1 of 2 rows", 7200.0)
    wait_for("1 of 2 assets, about 2.0 h left; long: 1 of 2 rows")


@dg.asset(deps=[first])
def failing() -> None:
    raise ValueError("no such thing")


@dg.asset(output_required=False, check_specs=[dg.AssetCheckSpec("has_rows", asset="skipping")])
def skipping() -> Iterator[dg.AssetCheckResult]:
    yield dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN, description="no [row]")


def test_a_check_that_stops_nothing_is_a_line(instance: dg.DagsterInstance) -> None:
    assert printed(instance, skipping).splitlines() == ["both", f"  {'skipping':<34}no [row]"]


def test_a_file_gets_finished_assets_and_what_is_left_while_the_run_goes_on(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATUS_SECONDS, "0.01")
    lines = printed(instance, first, second).splitlines()
    assert lines[0] == "both"
    assert any("first" in line and "3 in" in line and "2 out" in line and "1 rejected" in line for line in lines)
    assert any(line.startswith("  … both") and " left" in line for line in lines)


def test_what_is_left_of_a_run_is_not_less_than_what_is_left_of_its_stage(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATUS_SECONDS, "0.01")
    assert "about 2.0 h left" in printed(instance, first, long)


def test_what_was_materialised_before_a_failure_is_printed(instance: dg.DagsterInstance) -> None:
    with pytest.raises(MaterializationFailed, match="no such thing"):
        printed(instance, first, failing)
    assert "3 in" in OUTPUTS[-1].getvalue()


def test_the_first_trajectory_is_printed_once_with_the_path_of_its_image(
    crop_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(crop_home)
    output = StringIO()
    with Workspace.from_environment({"DARKROOM_HOME": str(crop_home)}) as workspace:
        first_trajectory = FirstTrajectory(Console(file=output, width=200), workspace)
        for _ in range(2):
            first_trajectory.look(dg.AssetMaterialization(["crop", "trajectories"], partition="small-0000"))
    assert output.getvalue().count("the first trajectory: ") == 1
    path = Path(output.getvalue().split()[-1])
    assert not path.is_absolute()
    with Image.open(path) as image:
        assert path.suffix == f".{str(image.format).lower()}"
