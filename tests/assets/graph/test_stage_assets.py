"""What a stage says of its progress in Dagster's log, and how it bears a store that is away."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from darkroom.assets.builds.jobs import root_cause
from darkroom.assets.clusters.placement import RUNS_ON_TAG
from darkroom.assets.definitions import SFT
from darkroom.assets.graph import families, stage_assets
from darkroom.assets.graph.stage_assets import progress_lines, repeated_while_away
from darkroom.pipelines.records import Trajectory
from darkroom.pipelines.storage.database import LedgerUnavailable
from darkroom.pipelines.storage.stage_runs import StageProgress, StageReport
from darkroom.pipelines.storage.storage_errors import StoreAway, storage_errors
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, materialize_shard


def logged(*, n_rows: int, seconds_per_row: float) -> list[str]:
    """The shares that are logged while so many rows are finished one after the other."""
    said: list[str] = []
    now = [0.0]
    log = SimpleNamespace(info=lambda line: said.append(line.split("(")[1].split(")")[0]))
    context = SimpleNamespace(asset_key=dg.AssetKey(["crop", "runs"]), log=log)
    progress = progress_lines(context, clock=lambda: now[0])
    for n_done in range(1, n_rows + 1):
        now[0] += seconds_per_row
        progress(StageProgress(n_done, n_rows))
    return said


def test_every_tenth_is_logged():
    assert logged(n_rows=40, seconds_per_row=1.0) == [f"{tenths}0%" for tenths in range(1, 11)]


def test_a_stage_that_is_done_in_a_second_logs_nothing():
    assert logged(n_rows=1000, seconds_per_row=0.001) == []


def test_fast_rows_are_logged_every_other_second():
    assert logged(n_rows=1000, seconds_per_row=0.004) == ["50%", "100%"]


def test_slow_rows_are_logged_every_half_minute():
    assert logged(n_rows=3, seconds_per_row=20.0) == ["33%", "67%", "100%"]
    assert len(logged(n_rows=1000, seconds_per_row=1.0)) > 30


@pytest.mark.parametrize(("tags", "n_tries"), [({RUNS_ON_TAG: "auto"}, 3), ({}, 1)])
def test_a_launched_run_waits_for_a_store_that_is_away_and_a_command_says_so(
    tags: dict[str, str], n_tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    @dg.asset
    def rows(context: dg.AssetExecutionContext) -> None:
        with repeated_while_away(context):
            tries.append(len(tries))
            if len(tries) < 3:
                raise StoreAway("cannot use s3://b: check the network")

    monkeypatch.setattr(stage_assets, "_REPEAT_SECONDS", 0.0)
    made = dg.materialize([rows], tags=tags, raise_on_error=False)
    assert (len(tries), made.success) == (n_tries, n_tries == 3)


def test_a_launched_run_that_waited_in_vain_says_what_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    @dg.asset
    def rows(context: dg.AssetExecutionContext) -> None:
        with repeated_while_away(context):
            raise LedgerUnavailable("the ledger's database does not answer")

    monkeypatch.setattr(stage_assets, "_REPEAT_SECONDS", 0.0)
    monkeypatch.setattr(stage_assets, "_N_REPEATS", 2)
    made = dg.materialize([rows], tags={RUNS_ON_TAG: "auto"}, raise_on_error=False)
    (failure,) = [event.step_failure_data for event in made.all_events if event.is_step_failure]
    assert root_cause(failure) == "the ledger's database does not answer"


def test_a_run_says_that_another_has_replaced_what_it_made(
    signs: Path, instance: dg.DagsterInstance, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage_result = families.stage_result

    def replaced_after(tables: Tables, report: StageReport, **details: Any) -> dg.MaterializeResult:
        made = stage_result(tables, report, **details)
        if report.key.asset == ("crop", "runs"):
            rows, facts = tables.read(report.key, Trajectory), tables.facts(report.key)
            tables.write(report.key, Trajectory, rows[:1], [], inputs="another run's", facts=facts)
        return made

    monkeypatch.setattr(families, "stage_result", replaced_after)
    chosen = [dg.AssetKey(["crop", stage]) for stage in ("drafts", "runs", "verdicts")]
    made = materialize_shard(instance, SFT, asset_selection=chosen, raise_on_error=False)
    (failure,) = [event.step_failure_data for event in made.all_events if event.is_step_failure]
    assert "crop/runs [signs-0000] was replaced by another run with other settings" in root_cause(failure)
    assert not workspace.tables.exists(TableKey(("crop", "verdicts"), PARTITION))


def test_a_failed_step_tells_the_mend_instead_of_what_was_behind_it() -> None:
    @dg.asset
    def full() -> None:
        with storage_errors("/home/images"):
            raise OSError(errno.ENOSPC, "No space left on device")

    @dg.asset
    def broken() -> None:
        raise ValueError from OSError("why")

    made = dg.materialize([full, broken], raise_on_error=False)
    told = {event.step_key: root_cause(event.step_failure_data) for event in made.all_events if event.is_step_failure}
    assert told["full"].startswith("cannot use /home/images: No space left on device")
    assert told["full"].endswith("free or enlarge the disk")
    assert told["broken"] == "OSError: why"
