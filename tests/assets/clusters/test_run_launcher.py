"""Where a run executes: by its tag, the environment, or here; what is missing is said in one line with the mend."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import dagster as dg
import pytest
import yaml
from dagster._core.code_pointer import CodePointer
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.launcher.base import RunLauncher
from dagster._core.origin import RepositoryPythonOrigin

from darkroom.assets.clusters import lost_runs, run_launcher, slurm
from darkroom.assets.clusters.lost_runs import fail_lost_runs, retry_undecided_failures
from darkroom.assets.clusters.placement import (
    GPUS_TAG,
    LOCAL,
    RUNS_ON_TAG,
    RunSettings,
    check_databases,
    forwarded,
    kind_of,
)
from darkroom.assets.clusters.worker import LocalRunLauncher
from darkroom.assets.dagster_home.instance import open_instance
from darkroom.sandbox.errors import UserError
from tests.assets.conftest import OpenInstance
from tests.ports import free_port

RUN = "00000000-0000-4000-8000-000000000001"
LAUNCHER = {"module": "darkroom.assets.clusters.run_launcher", "class": "PlacedRunLauncher"}


class Recorder(RunLauncher):
    """Stands for a cluster that this machine has not: it launches nothing, and says what it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[dg.DagsterRun] = []
        self.health = WorkerStatus.RUNNING

    def launch_run(self, context: LaunchRunContext) -> None:
        self.launched.append(context.dagster_run)

    def terminate(self, run_id: str) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        return CheckRunHealthResult(self.health, "as the test says")


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> dict[str, Recorder]:
    """Of each place that was asked for; the databases are not looked at."""
    made: dict[str, Recorder] = {}
    monkeypatch.setattr(run_launcher, "_launcher", lambda place, settings: made.setdefault(place, Recorder()))
    monkeypatch.setattr(run_launcher, "check_databases", lambda instance: None)
    return made


@pytest.fixture
def placed(open_instance: OpenInstance) -> Any:
    with open_instance(run_launcher=LAUNCHER) as instance:
        yield instance


def launched(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, **tags: str) -> dg.DagsterRun:
    origin = RepositoryPythonOrigin(
        sys.executable, CodePointer.from_module("darkroom.assets.definitions", "defs", None), entry_point=["dagster"]
    )
    run = dg.DagsterRun("job", run_id=RUN, status=status, tags=tags, job_code_origin=origin.get_job_origin("job"))
    instance.add_run(run)
    instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))
    return run


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("ray://head:10001", "ray"),
        ("http://head:8265", "ray"),
        ("auto", "ray"),
        ("slurm", "slurm"),
        ("kubernetes", "kubernetes"),
        ("here", "here"),
    ],
)
def test_a_place_is_an_address_of_ray_or_a_name(place: str, kind: str) -> None:
    assert kind_of(place) == kind


def test_what_is_no_place_is_answered_with_those_that_are() -> None:
    with pytest.raises(UserError, match=r"'head:10001' is no place for runs: `ray://HOST:PORT`.*`slurm`"):
        kind_of("head:10001")


def test_a_run_executes_where_its_tag_says_and_else_where_the_environment_says(
    placed: dg.DagsterInstance, recorders: dict[str, Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DARKROOM_RUN_ON", "ray://of-the-environment:1")
    launched(placed, dg.DagsterRunStatus.STARTING, **{RUNS_ON_TAG: "ray://of-the-tag:1"})
    assert list(recorders) == ["ray://of-the-tag:1"]
    placed.delete_run(RUN)
    launched(placed, dg.DagsterRunStatus.STARTING)
    assert list(recorders) == ["ray://of-the-tag:1", "ray://of-the-environment:1"]
    monkeypatch.delenv("DARKROOM_RUN_ON")
    run = placed.get_run_by_id(RUN)
    assert run is not None
    assert run.tags[RUNS_ON_TAG] == "ray://of-the-environment:1", "it is looked for where it was launched"
    placed.run_launcher.check_run_worker_health(run)
    assert len(recorders) == 2


def test_a_run_elsewhere_is_started_by_the_python_of_its_code_and_not_by_the_workers_path(
    placed: dg.DagsterInstance, recorders: dict[str, Recorder]
) -> None:
    launched(placed, dg.DagsterRunStatus.STARTING, **{RUNS_ON_TAG: "auto"})
    (run,) = recorders["auto"].launched
    assert run.job_code_origin is not None
    assert run.job_code_origin.repository_origin.entry_point == [sys.executable, "-P", "-m", "dagster"]


def test_the_queue_takes_a_run_back_whose_place_is_away(
    placed: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_launcher, "check_databases", lambda instance: None)
    with pytest.raises(DagsterUserCodeUnreachableError, match="no Ray cluster answers at"):
        launched(placed, dg.DagsterRunStatus.STARTING, **{RUNS_ON_TAG: f"http://127.0.0.1:{free_port()}"})
    settings = yaml.safe_load((Path(run_launcher.__file__).parents[1] / "dagster_team.yaml").read_text())
    assert settings["run_coordinator"]["config"]["max_user_code_failure_retries"] > 0


def test_nothing_set_is_this_machine(placed: dg.DagsterInstance) -> None:
    assert RunSettings.from_environment({}).on == LOCAL
    assert isinstance(run_launcher._launcher(LOCAL, RunSettings()), LocalRunLauncher)


def test_a_setting_that_does_not_fit_names_its_variable() -> None:
    with pytest.raises(UserError, match="DARKROOM_RUN_CPUS is '0'"):
        RunSettings.from_environment({"DARKROOM_RUN_CPUS": "0"})


def test_a_run_elsewhere_gets_settings_databases_and_named_keys_and_nothing_else(tmp_path: Path) -> None:
    environment = {
        "DARKROOM_HOME": "data",
        "DARKROOM_LOCAL": "local",
        "DARKROOM_IMAGES": "s3://bucket/images",
        "DARKROOM_ENVIRONMENTS": "",
        "DARKROOM_LEDGER": "postgresql+psycopg://db/ledger",
        "DARKROOM_JUDGE_KEY": "JUDGES_KEY",
        "DARKROOM_RUN_ON": "auto",
        "DAGSTER_POSTGRES_URL": "postgresql://db/dagster",
        "JUDGES_KEY": "secret",
        "OPENAI_API_KEY": "secret too",
        "AWS_SECRET_ACCESS_KEY": "of somebody else",
        "PATH": "/bin",
    }
    found = forwarded(environment)
    assert found.pop("DARKROOM_HOME") == str(Path("data").absolute()), "the worker has another working folder"
    assert found.pop("DARKROOM_LOCAL") == str(Path("local").absolute())
    assert (found.pop("DARKROOM_IMAGES"), found.pop("DARKROOM_ENVIRONMENTS")) == ("s3://bucket/images", "")
    assert sorted(found) == [
        "DAGSTER_POSTGRES_URL",
        "DARKROOM_JUDGE_KEY",
        "DARKROOM_LEDGER",
        "JUDGES_KEY",
        "OPENAI_API_KEY",
    ]
    assert forwarded({"DARKROOM_HOME": "s3://bucket/home"})["DARKROOM_HOME"] == "s3://bucket/home"


def test_sqlite_on_several_machines_is_refused_with_the_mend(
    placed: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", placed.root_directory)
    for instance in (placed, open_instance()):
        with pytest.raises(UserError, match=r"history is in SQLite.*dagster_team\.yaml.*DAGSTER_POSTGRES_URL"):
            check_databases(instance)
    monkeypatch.setattr(placed, "_event_storage", Mock())  # of another module
    with pytest.raises(UserError, match=r"ledger is in SQLite.*DARKROOM_LEDGER=postgresql"):
        check_databases(placed)
    monkeypatch.setenv("DARKROOM_LEDGER", "postgresql+psycopg://db/ledger")
    check_databases(placed)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "darkroom.assets.clusters.ray", None)
    with pytest.raises(UserError, match=r"pip install 'darkroom-toolkit\[ray\]'"):
        run_launcher._launcher("auto", RunSettings())


@pytest.mark.parametrize("scheme", ["http", "ray"])
def test_an_address_at_which_nobody_answers_is_one_line(scheme: str) -> None:
    with pytest.raises(UserError, match=rf"no Ray cluster answers at {scheme}://127\.0\.0\.1:") as caught:
        run_launcher._launcher(f"{scheme}://127.0.0.1:{free_port()}", RunSettings())
    assert "\n" not in str(caught.value)


def test_a_worker_that_ends_before_its_run_begins_is_noticed(
    placed: dg.DagsterInstance, recorders: dict[str, Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    launched(placed, dg.DagsterRunStatus.STARTING, **{RUNS_ON_TAG: "auto"})
    placed.report_dagster_event(DagsterEvent(DagsterEventType.RUN_STARTING.value, "job"), run_id=RUN)
    monkeypatch.setattr(lost_runs, "_LAUNCH_SECONDS", 0.0)
    assert fail_lost_runs(placed) == 0
    recorders["auto"].health = WorkerStatus.FAILED
    monkeypatch.undo()
    monkeypatch.setattr(run_launcher, "_launcher", lambda place, settings: recorders[place])
    assert fail_lost_runs(placed) == 0, "it may not have got there yet"
    monkeypatch.setattr(lost_runs, "_LAUNCH_SECONDS", 0.0)
    assert fail_lost_runs(placed) == 1
    run = placed.get_run_by_id(RUN)
    assert run is not None
    assert run.status == dg.DagsterRunStatus.FAILURE


def test_a_start_on_this_machine_is_given_up_in_time(
    placed: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed.add_run(dg.DagsterRun("job", run_id=RUN, status=dg.DagsterRunStatus.STARTING))
    placed.report_dagster_event(DagsterEvent(DagsterEventType.RUN_STARTING.value, "job"), run_id=RUN)
    assert fail_lost_runs(placed) == 0
    monkeypatch.setattr(lost_runs, "_START_SECONDS", 0.0)
    assert fail_lost_runs(placed) == 1


def test_a_repeat_that_was_never_queued_is_given_up_in_time(
    placed: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed.add_run(dg.DagsterRun("job", run_id=RUN, status=dg.DagsterRunStatus.NOT_STARTED))
    assert fail_lost_runs(placed) == 0
    monkeypatch.setattr(lost_runs, "_START_SECONDS", -1.0)
    assert fail_lost_runs(placed) == 1


def test_dagster_decides_at_last_whether_a_run_is_repeated_whose_failure_was_half_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=1)
    with dg.instance_for_test(temp_dir=str(tmp_path), overrides={"run_retries": {"enabled": True}}) as instance:
        instance.add_run(dg.DagsterRun("job", run_id=RUN, status=dg.DagsterRunStatus.FAILURE))
        assert retry_undecided_failures(instance, long_ago) == 0, "the decision may be on its way"
        monkeypatch.setattr(lost_runs, "_DECISION_SECONDS", -1.0)
        assert retry_undecided_failures(instance, datetime.now(UTC) + timedelta(days=1)) == 0, "nothing failed since"
        assert retry_undecided_failures(instance, long_ago) == 1
        run = instance.get_run_by_id(RUN)
        assert run is not None
        assert "dagster/will_retry" in run.tags
        assert retry_undecided_failures(instance, long_ago) == 0, "it is decided"


def test_a_run_that_trains_takes_gpus_and_a_tag_may_say_how_many() -> None:
    settings = RunSettings(n_gpus=8)
    checkpoint, rows = frozenset({dg.AssetKey("sft_checkpoint")}), frozenset({dg.AssetKey(["crop", "drafts"])})
    assert settings.gpus_of(dg.DagsterRun("train", run_id=RUN)) == 8
    assert settings.gpus_of(dg.DagsterRun("__ASSET_JOB", run_id=RUN, asset_selection=checkpoint)) == 8
    assert settings.gpus_of(dg.DagsterRun("__ASSET_JOB", run_id=RUN, asset_selection=rows)) == 0
    assert settings.gpus_of(dg.DagsterRun("sft_trajectories", run_id=RUN, tags={GPUS_TAG: "2"})) == 2
    with pytest.raises(UserError, match="tag darkroom/gpus is 'all'"):
        settings.gpus_of(dg.DagsterRun("train", run_id=RUN, tags={GPUS_TAG: "all"}))


def test_gpus_of_an_earlier_versions_setting_count() -> None:
    assert RunSettings.from_environment({"DARKROOM_LAUNCH_GPUS": "4"}).n_gpus == 4
    assert RunSettings.from_environment({"DARKROOM_LAUNCH_GPUS": "4", "DARKROOM_RUN_GPUS": "2"}).n_gpus == 2


def test_slurm_and_ray_are_asked_for_the_gpus_of_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("darkroom.assets.clusters.ray")
    scripts: list[str] = []
    settings, run = RunSettings(n_gpus=2, options="--time=1:00"), dg.DagsterRun("train", run_id=RUN)

    def submitted(*command: str) -> str:
        scripts.append(Path(command[-1]).read_text())
        return "7;cluster\n"

    monkeypatch.setattr(slurm, "_slurm", submitted)
    on_ray = ray.RayLauncher(address="http://head:8265", num_cpus=1)
    on_ray.settings, on_ray.client = settings, Mock()
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        origin = RepositoryPythonOrigin(sys.executable, CodePointer.from_module("m", "defs", None), entry_point=["x"])
        run = run._replace(job_code_origin=origin.get_job_origin("train"))
        instance.add_run(run)
        for launcher in (slurm.SlurmRunLauncher(settings), on_ray):
            launcher.register_instance(instance)
            launcher.launch_run(LaunchRunContext(run, workspace=None))
    options = [line for line in scripts[0].splitlines() if line.startswith("#SBATCH")]
    assert "#SBATCH --gpus-per-node=2" in options
    assert options[-1] == "#SBATCH --time=1:00"
    assert on_ray.client.submit_job.call_args.kwargs["entrypoint_num_gpus"] == 2


def test_pods_of_a_training_get_gpus_by_a_tag_of_its_job() -> None:
    assert RunSettings().training_tags() == {}
    (config,) = RunSettings(n_gpus=2).training_tags().values()
    assert json.loads(config) == {"container_config": {"resources": {"limits": {"nvidia.com/gpu": 2}}}}
