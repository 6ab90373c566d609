"""Stages that wait for batches in the graph: no failure, no table, nothing downstream; and the switch that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.builds.build import build_sft
from darkroom.assets.definitions import SFT
from darkroom.assets.graph.batch_sensor import _ROLES, answered_batches
from darkroom.assets.graph.families import stage_key
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.storage.storage_errors import AnswersPending
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.terminal import SafeConsole
from tests.assets.conftest import PARTITION, graph, materialize_shard
from tests.batch_service import BatchService

DIRECT = [stage_key("direct", stage) for stage in (*STAGES, "rejects")]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchService]:
    with BatchService().serving() as serving:
        settings = {"": "openai", "_URL": serving.url, "_MODEL": "mock", "_BATCH": "openai"}
        for name, value in settings.items():
            monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
        yield serving


def requested(instance: dg.DagsterInstance) -> list[dg.RunRequest]:
    """As the code server has it: of the instance it knows the address."""
    repository = graph().get_repository_def()
    with dg.SensorEvaluationContext(
        instance.get_ref(),
        *(None, None, None, None),
        repository_def=repository,
        sensor_name=answered_batches.name,
        resources={name: repository.get_top_level_resources()[name] for name in ("workspace", *_ROLES)},
    ) as tick:
        return list(answered_batches.evaluate_tick(tick).run_requests or ())


def drafted(run: dg.ExecuteInProcessResult) -> bool:
    return any(made.asset_key == DIRECT[0] for made in run.asset_materializations_for_node("direct__drafts"))


def test_a_stage_that_waits_is_no_failure_and_goes_on_when_its_batch_has_ended(
    signs: Path, instance: dg.DagsterInstance, service: BatchService
) -> None:
    run = materialize_shard(instance, SFT, asset_selection=DIRECT)
    assert run.success
    assert not drafted(run)
    (check,) = run.get_asset_check_evaluations()
    assert (check.passed, check.severity, check.metadata["rows_pending"].value) == (
        False,
        dg.AssetCheckSeverity.WARN,
        5,
    )
    assert "rows wait for answers of a batch" in (check.description or "")
    assert {event.step_key for event in run.all_events if event.is_step_skipped} == {
        f"direct__{stage}" for stage in (*STAGES[1:], "rejects")
    }
    assert requested(instance) == []
    service.end_all()
    (request,) = requested(instance)
    assert (request.asset_selection, request.partition_key) == (DIRECT, PARTITION)
    assert requested(instance)[0].run_key == request.run_key
    materialize_shard(instance, SFT, asset_selection=DIRECT)  # the decisions are there, the turns wait
    service.end_all()
    assert requested(instance)[0].run_key != request.run_key
    assert drafted(materialize_shard(instance, SFT, asset_selection=DIRECT))


@pytest.mark.soak
def test_a_build_that_waits_ends_with_a_status_of_its_own_and_ships_nothing_yet(
    signs: Path, workspace: Workspace, service: BatchService
) -> None:
    kept = TableKey(tuple(DIRECT[-2].path), PARTITION)
    build = partial(build_sft, SafeConsole(quiet=True), "signs", train=False, families=["direct"])
    for _ in ("decisions", "first turns", "votes"):
        with pytest.raises(AnswersPending, match="5 rows wait for answers of a batch") as pending:
            build()
        assert pending.value.exit_status == 75
        assert not workspace.tables.exists(kept)
        assert not (workspace.home / "datasets").exists()
        service.end_all()
    build()
    assert workspace.tables.exists(kept)
    assert set(service.paid.values()) == {1}
