"""Queued runs: one for each shard, once; a shard ends with the run that Dagster does not repeat."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.events import DagsterEventType

from darkroom.assets.clusters.placement import RUNS_ON_TAG
from darkroom.assets.clusters.queued_runs import QueuedRuns
from tests.assets.conftest import OpenInstance

SHARDS = ["signs-0000", "signs-0001", "signs-0002"]
PLANNED = {DagsterEventType.ASSET_MATERIALIZATION_PLANNED, DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED}
REPEAT = "00000000-0000-4000-8000-000000000001"


@dg.asset(partitions_def=dg.StaticPartitionsDefinition(SHARDS))
def rows() -> None:
    """Of a shard."""


@dg.asset(partitions_def=dg.StaticPartitionsDefinition(SHARDS))
def others() -> None:
    """Of a shard."""


class Steps(dg.Config):
    """Settings of a checkpoint."""

    n_steps: int = 1


@pytest.fixture(scope="module")
def job() -> dg.JobDefinition:
    return dg.Definitions(assets=[rows, others], jobs=[dg.define_asset_job("made", "*")]).resolve_job_def("made")


@pytest.fixture
def instance(open_instance: OpenInstance) -> Iterator[dg.DagsterInstance]:
    coordinator = {"module": "dagster.core.run_coordinator", "class": "QueuedRunCoordinator"}
    retries = {"enabled": True, "max_retries": 1}
    with open_instance(run_coordinator=coordinator, run_retries=retries) as made:
        yield made


@pytest.fixture
def queued(instance: dg.DagsterInstance, job: dg.JobDefinition) -> QueuedRuns:
    runs = QueuedRuns(instance, job, "auto")
    runs.submit(SHARDS, [dg.AssetKey("rows")])
    return runs


def runs_of(instance: dg.DagsterInstance) -> dict[str, dg.DagsterRun]:
    return {run.tags["dagster/partition"]: run for run in instance.get_runs()}


def test_each_shard_is_a_queued_run_at_the_place(queued: QueuedRuns, instance: dg.DagsterInstance) -> None:
    runs = runs_of(instance)
    assert sorted(runs) == SHARDS
    assert {run.status for run in runs.values()} == {dg.DagsterRunStatus.QUEUED}
    assert {run.tags[RUNS_ON_TAG] for run in runs.values()} == {"auto"}
    assert {run.asset_selection for run in runs.values()} == {frozenset({dg.AssetKey("rows")})}
    # what a daemon needs to launch and to repeat them
    origins = {run.remote_job_origin.location_name for run in runs.values() if run.remote_job_origin}
    assert origins == {"darkroom"}
    assert (queued.n_open(), queued.n_running()) == (3, 0)


def test_a_queued_run_is_the_one_that_dagster_creates(
    queued: QueuedRuns, instance: dg.DagsterInstance, job: dg.JobDefinition
) -> None:
    run = runs_of(instance)[SHARDS[0]]
    created = instance.create_run_for_job(
        job,
        tags=run.tags,
        asset_selection=run.asset_selection,
        remote_job_origin=run.remote_job_origin,
        job_code_origin=run.job_code_origin,
    )
    assert created._replace(run_id=run.run_id) == run._replace(status=created.status)
    assert planned_of(instance, created) == planned_of(instance, run) != []


def planned_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[dg.DagsterEvent | None]:
    return [log.dagster_event for log in instance.all_logs(run.run_id, of_type=PLANNED)]


def test_a_command_that_is_run_again_waits_for_what_is_queued(
    queued: QueuedRuns, instance: dg.DagsterInstance, job: dg.JobDefinition
) -> None:
    again = QueuedRuns(instance, job, "auto")
    again.submit(SHARDS, [dg.AssetKey("rows")])
    assert len(instance.get_runs()) == 3
    assert again.n_open() == 3
    others_too = QueuedRuns(instance, job, "auto")
    others_too.submit(SHARDS[:1], [dg.AssetKey("others")])
    assert len(instance.get_runs()) == 4, "other assets are other work"


def test_a_shard_waits_while_a_run_with_other_settings_makes_the_same(
    queued: QueuedRuns, instance: dg.DagsterInstance, job: dg.JobDefinition
) -> None:
    other = QueuedRuns(instance, job, "auto")
    config = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
    assert other.submit(SHARDS[:2], [dg.AssetKey("rows")], config) == 2
    assert (other.n_open(), len(instance.get_runs())) == (0, 3)
    for shard in SHARDS[:2]:
        instance.report_run_canceled(runs_of(instance)[shard])
    assert other.submit(SHARDS[:2], [dg.AssetKey("rows")], config) == 0
    assert (other.n_open(), len(instance.get_runs())) == (2, 5)


def test_a_shard_that_has_ended_is_not_queued_again_while_others_wait(
    queued: QueuedRuns, instance: dg.DagsterInstance
) -> None:
    for run in runs_of(instance).values():
        instance.report_run_canceled(run)
    assert len(list(queued.ended())) == 3
    assert queued.submit(SHARDS, [dg.AssetKey("rows")]) == 0
    assert (queued.n_open(), len(instance.get_runs())) == (0, 3)


def test_what_a_killed_command_did_not_submit_is_submitted_by_the_next(
    instance: dg.DagsterInstance, job: dg.JobDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(dg.DagsterInstance, "submit_run", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            QueuedRuns(instance, job, "auto").submit(SHARDS)
    again = QueuedRuns(instance, job, "auto")
    again.submit(SHARDS)
    assert {run.status for run in instance.get_runs()} == {dg.DagsterRunStatus.QUEUED}
    assert (len(instance.get_runs()), again.n_open()) == (3, 3)


def test_a_command_that_queues_again_after_the_history_was_away_leaves_what_has_ended(
    queued: QueuedRuns, instance: dg.DagsterInstance
) -> None:
    instance.report_run_canceled(runs_of(instance)[SHARDS[0]])
    queued.submit(SHARDS, [dg.AssetKey("rows")])
    assert (len(instance.get_runs()), queued.n_open()) == (3, 3)


def test_a_shard_whose_end_could_not_be_noted_comes_again(queued: QueuedRuns, instance: dg.DagsterInstance) -> None:
    instance.report_run_canceled(runs_of(instance)[SHARDS[0]])
    assert next(queued.ended())[0] == SHARDS[0]  # whoever took it did not come back for the next
    assert [partition for partition, _ in queued.ended()] == SHARDS[:1]
    assert list(queued.ended()) == []


def test_a_lost_run_has_not_ended_until_its_repeat_has(queued: QueuedRuns, instance: dg.DagsterInstance) -> None:
    lost = runs_of(instance)[SHARDS[0]]
    instance.report_run_failed(lost, "its worker is gone")
    assert list(queued.ended()) == []
    instance.add_run(dg.DagsterRun("made", run_id=REPEAT, status=dg.DagsterRunStatus.STARTED))
    instance.add_run_tags(lost.run_id, {"dagster/auto_retry_run_id": REPEAT})
    assert list(queued.ended()) == []
    assert queued.n_running() == 1
    repeat = instance.get_run_by_id(REPEAT)
    assert repeat is not None
    instance.report_run_canceled(repeat)
    assert [(partition, run.run_id) for partition, run in queued.ended()] == [(SHARDS[0], REPEAT)]
    assert queued.n_open() == 2


def test_a_run_that_dagster_does_not_repeat_has_ended(queued: QueuedRuns, instance: dg.DagsterInstance) -> None:
    failed = runs_of(instance)[SHARDS[1]]
    instance.report_run_failed(failed, "lost")
    instance.add_run_tags(failed.run_id, {"dagster/will_retry": "false"})
    assert [partition for partition, _ in queued.ended()] == [SHARDS[1]]


def test_cancelling_ends_what_is_queued(queued: QueuedRuns, instance: dg.DagsterInstance) -> None:
    queued.cancel()
    assert {run.status for run in instance.get_runs()} == {dg.DagsterRunStatus.CANCELED}
    assert len(list(queued.ended())) == 3


def test_a_run_that_is_queued_in_a_pod_gets_what_the_chart_gives_to_runs(
    instance: dg.DagsterInstance, job: dg.JobDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_CURRENT_IMAGE", "registry.example.org/darkroom:0.1.0")
    monkeypatch.setenv("DAGSTER_CONTAINER_CONTEXT", '{"k8s": {"env_secrets": ["darkroom"]}}')
    QueuedRuns(instance, job, "kubernetes").submit(SHARDS[:1])
    (run,) = instance.get_runs()
    assert run.job_code_origin is not None
    origin = run.job_code_origin.repository_origin
    assert origin.container_image == "registry.example.org/darkroom:0.1.0"
    assert origin.container_context == {"k8s": {"env_secrets": ["darkroom"]}}


def test_a_job_without_shards_is_one_run_with_its_settings(instance: dg.DagsterInstance) -> None:
    def checkpoint(config: Steps) -> None: ...

    checkpoint.__annotations__["config"] = Steps
    trained = dg.Definitions(
        assets=[dg.asset(checkpoint)], jobs=[dg.define_asset_job("train", "*", tags={"dagster-k8s/config": "{}"})]
    ).resolve_job_def("train")
    config = {"ops": {"checkpoint": {"config": {"n_steps": 3}}}}
    for _ in range(2):
        runs = QueuedRuns(instance, trained, "slurm")
        runs.submit([""], run_config=config)
    QueuedRuns(instance, trained, "slurm").submit([""], run_config={"ops": {"checkpoint": {"config": {"n_steps": 4}}}})
    other, run = instance.get_runs()
    assert (run.run_config, runs.n_open()) == (config, 1)
    assert (run.tags[RUNS_ON_TAG], run.tags["dagster-k8s/config"]) == ("slurm", "{}")
    assert "dagster/partition" not in run.tags
    assert other.run_config != config, "other settings are other work"
