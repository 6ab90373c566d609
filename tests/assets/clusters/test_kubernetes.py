"""Runs as Jobs of Kubernetes: dagster-k8s with the shipped settings, against an API server that keeps what it is sent.

The server stands for a cluster, of which it knows how a Job is created and asked for. What it is sent is validated
against the schemas of Kubernetes.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import dagster as dg
import kubernetes_validate
import pytest
import yaml
from dagster._core.code_pointer import CodePointer
from dagster._core.launcher import LaunchRunContext, WorkerStatus
from dagster._core.origin import RepositoryPythonOrigin

from darkroom.assets.clusters.lost_runs import fail_lost_runs
from darkroom.assets.clusters.queued_runs import LOCATION
from darkroom.assets.clusters.run_launcher import check_placement
from darkroom.sandbox.errors import UserError
from tests.assets.conftest import OpenInstance
from tests.json_endpoint import JsonHandler

RUN, OTHER = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
SETTINGS = files("darkroom.assets") / "kubernetes"


class ApiServer(ThreadingHTTPServer):
    """``jobs``: as they were created, by name; ``status``: what it says of each."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.status: dict[str, Any] = {"active": 1}


class Requests(JsonHandler):
    server: ApiServer

    def do_POST(self) -> None:
        job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path.startswith("/apis/batch/v1/namespaces/research/jobs")
        self.server.jobs[job["metadata"]["name"]] = job
        self.reply(job, status=201)

    def do_GET(self) -> None:
        name = self.path.rpartition("/jobs/")[2].partition("/")[0]
        job = self.server.jobs.get(name)
        if job:
            self.reply({**job, "status": self.server.status})
        else:
            self.reply({"reason": "NotFound"}, status=404)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()


@pytest.fixture
def instance(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_instance: OpenInstance
) -> Iterator[dg.DagsterInstance]:
    """With the launcher of the shipped file, from outside of the cluster."""
    monkeypatch.setenv("DARKROOM_KUBERNETES_NAMESPACE", "research")
    monkeypatch.setenv("DARKROOM_KUBERNETES_IMAGE", "registry.example.org/darkroom:0.1.0")
    launcher = yaml.safe_load((SETTINGS / "dagster.yaml").read_text())["run_launcher"]
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    (tmp_path / "kubeconfig").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "contexts": [context],
                "users": [{"name": "u", "user": {}}],
                "current-context": "c",
            }
        )
    )
    launcher["config"] |= {"load_incluster_config": False, "kubeconfig_file": str(tmp_path / "kubeconfig")}
    with open_instance(run_launcher=launcher) as made:
        yield made


@pytest.fixture
def run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    """One that was launched and has begun."""
    origin = RepositoryPythonOrigin(
        sys.executable, CodePointer.from_module("darkroom.assets.definitions", "defs", None)
    )
    code = origin.get_job_origin("sft_trajectories")
    launched = dg.DagsterRun("sft_trajectories", run_id=RUN, status=dg.DagsterRunStatus.STARTED, job_code_origin=code)
    instance.add_run(launched)
    instance.run_launcher.launch_run(LaunchRunContext(launched, workspace=None))
    return launched


def test_a_run_is_a_job_that_kubernetes_takes(server: ApiServer, run: dg.DagsterRun) -> None:
    (job,) = server.jobs.values()
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    assert job["spec"]["backoffLimit"] == 0, "Dagster repeats it, not Kubernetes"
    assert job["spec"]["ttlSecondsAfterFinished"] == 86400
    assert job["metadata"]["labels"]["dagster/run-id"] == run.run_id
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert "execute_run" in container["args"]


def test_its_container_has_what_the_sandbox_needs(server: ApiServer, run: dg.DagsterRun) -> None:
    pod = next(iter(server.jobs.values()))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"]["seccompProfile"] == {"type": "Unconfined"}, "unshare and mount are refused"
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"
    assert volumes[mounts["/data"]]["persistentVolumeClaim"] == {"claimName": "darkroom-home"}
    assert {source["secretRef"]["name"] for source in container["envFrom"] if "secretRef" in source} == {"darkroom"}


@pytest.mark.parametrize(
    ("status", "health"),
    [
        ({"active": 1}, WorkerStatus.RUNNING),
        ({"failed": 1}, WorkerStatus.FAILED),
        # the process ended without a word to Dagster
        ({"succeeded": 1}, WorkerStatus.FAILED),
    ],
)
def test_a_run_whose_pod_is_gone_is_noticed(
    server: ApiServer, instance: dg.DagsterInstance, run: dg.DagsterRun, status: dict[str, int], health: WorkerStatus
) -> None:
    server.status = status
    assert instance.run_launcher.supports_check_run_worker_health
    assert instance.run_launcher.check_run_worker_health(run).status == health


def test_a_run_whose_job_was_deleted_is_noticed(
    server: ApiServer, instance: dg.DagsterInstance, run: dg.DagsterRun
) -> None:
    server.jobs.clear()
    assert instance.run_launcher.check_run_worker_health(run).status not in (WorkerStatus.RUNNING, WorkerStatus.SUCCESS)


def test_kubernetes_is_a_place_only_where_dagster_has_its_launcher(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("darkroom.assets.clusters.run_launcher.check_databases", lambda _: None)
    check_placement(instance, "kubernetes")
    with dg.instance_for_test() as other, pytest.raises(UserError, match=r"copy assets/kubernetes/dagster\.yaml"):
        check_placement(other, "kubernetes")


@pytest.mark.parametrize(("status", "n_failed"), [({"active": 1}, 0), ({"failed": 1}, 1)])
def test_a_run_whose_pod_could_not_start_is_not_waited_for(
    server: ApiServer, instance: dg.DagsterInstance, run: dg.DagsterRun, status: dict[str, int], n_failed: int
) -> None:
    starting = dg.DagsterRun("sft_trajectories", run_id=OTHER, status=dg.DagsterRunStatus.STARTING)
    instance.add_run(dg.DagsterRun(**(starting._asdict() | {"job_code_origin": run.job_code_origin})))
    instance.run_launcher.launch_run(LaunchRunContext(instance.get_run_by_id(OTHER), workspace=None))
    server.status = status
    assert fail_lost_runs(instance) == n_failed
    found = instance.get_run_by_id(OTHER)
    assert found is not None
    assert found.is_failure is bool(n_failed)


def test_the_values_of_the_chart_say_what_the_file_without_it_says() -> None:
    values = yaml.safe_load((SETTINGS / "values.yaml").read_text())
    alone = yaml.safe_load((SETTINGS / "dagster.yaml").read_text())
    (deployment,) = values["dagster-user-deployments"]["deployments"]
    config, launcher = alone["run_launcher"]["config"], values["runLauncher"]["config"]["k8sRunLauncher"]
    assert deployment["name"] == LOCATION, "a daemon repeats only runs of a location that it knows by name"
    assert deployment["includeConfigInLaunchedRuns"] == {"enabled": True}
    assert deployment["volumes"] == config["volumes"]
    assert deployment["volumeMounts"] == config["volume_mounts"]
    assert launcher["securityContext"] == deployment["securityContext"] == config["security_context"]
    assert launcher["resources"] == config["resources"]
    daemon = values["dagsterDaemon"]
    assert daemon["runMonitoring"]["maxResumeRunAttempts"] == alone["run_monitoring"]["max_resume_run_attempts"] == 0
    assert daemon["runRetries"]["maxRetries"] == alone["run_retries"]["max_retries"]
    assert daemon["runMonitoring"]["startTimeoutSeconds"] == alone["run_monitoring"]["start_timeout_seconds"]
    assert daemon["runRetries"]["retryOnAssetOrOpFailure"] == alone["run_retries"]["retry_on_asset_or_op_failure"]
    pools = {"granularity": values["concurrency"]["pools"]["granularity"]}
    pools["default_limit"] = values["concurrency"]["pools"]["defaultLimit"]
    assert pools == alone["concurrency"]["pools"]
    most = daemon["runCoordinator"]["config"]["queuedRunCoordinator"]["maxConcurrentRuns"]
    assert most == alone["concurrency"]["runs"]["max_concurrent_runs"]
