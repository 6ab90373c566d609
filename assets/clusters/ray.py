"""Runs as jobs of a Ray cluster: dagster-ray's launcher, with what a lost cluster and a wrong address need.

dagster-ray 0.4.8 tells run monitoring that a run's health is unknown when the cluster's head gives any error, and then
Dagster takes the run for lost: a head that is busy for a moment would have every run repeated. Here only an answer
counts: that the job has ended, or that the cluster, started anew, does not know it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from functools import cached_property
from typing import cast
from urllib.parse import urlsplit

import dagster as dg
from dagster_ray.core.run_launcher import RayRunLauncher, get_job_submission_id_from_run_id
from ray.job_submission import JobSubmissionClient

from darkroom.assets.clusters.placement import ClusterUnavailable, RunSettings, forwarded
from darkroom.assets.clusters.worker import CheckRunHealthResult, LaunchRunContext, lost
from darkroom.sandbox.errors import raised_as

_CONFIG_TAG = "dagster-ray/config"
"""A run's own resources, as dagster-ray takes them."""
_UNKNOWN_JOB = "does not exist"
_MEBIBYTE = 2**20
_ASK = "import ray, sys; print('http://' + ray.init(sys.argv[1], log_to_driver=False).dashboard_url)"
_ATTEMPTS = 3
_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_CLIENT_PORT = 10001


def ray_launcher(address: str, settings: RunSettings) -> RayLauncher:
    """The launcher for a cluster: a run goes where its CPUs are free. Raises ``ClusterUnavailable``."""
    variables, memory = [f"{name}={value}" for name, value in forwarded().items()], settings.memory_mb * _MEBIBYTE
    launcher = RayLauncher(address=address, num_cpus=settings.n_cpus, memory=memory or None, env_vars=variables)
    launcher.settings = settings
    _ = launcher.client
    return launcher


class RayLauncher(RayRunLauncher):
    """A run is a job of its own, with the run's id in its name; Ray chooses the node."""

    settings = RunSettings()

    @cached_property
    def client(self) -> JobSubmissionClient:
        """Raises ``ClusterUnavailable`` where no cluster answers."""
        return connected(self.address)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Raises ``ClusterUnavailable`` where the head does not answer."""
        with raised_as(lambda error: _unreachable(self.address, str(error)), RuntimeError, OSError):
            self.client.get_version()
        run = context.dagster_run
        if n_gpus := self.settings.gpus_of(run):
            config = {"num_gpus": n_gpus, **json.loads(run.tags.get(_CONFIG_TAG, "{}"))}
            run = run.with_tags({**run.tags, _CONFIG_TAG: json.dumps(config)})
        super().launch_run(context._replace(dagster_run=run))

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Raises ``RuntimeError`` or ``ConnectionError`` while the head does not answer; run monitoring asks again."""
        job = get_job_submission_id_from_run_id(run.run_id)
        try:
            self.client.get_job_status(job)
        except RuntimeError as error:
            if _UNKNOWN_JOB not in str(error):
                raise
            return lost(f"the Ray cluster does not know the job {job} any more")
        return cast(CheckRunHealthResult, super().check_run_worker_health(run))

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        """Ray's message about the job; dagster-ray's answer holds its environment, with the databases' passwords."""
        return f"Ray says: {self.client.get_job_info(get_job_submission_id_from_run_id(run.run_id)).message}"


def connected(address: str) -> JobSubmissionClient:
    """A client of the cluster. Raises ``ClusterUnavailable`` if none answers, or one that takes no jobs."""
    url = dashboard_of(address) if address.startswith("ray://") else address
    try:
        return JobSubmissionClient(url)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise _unreachable(address, str(error) or type(error).__name__) from error


def dashboard_of(address: str) -> str:
    """The address at which the cluster behind a ``ray://`` address takes jobs. A process of its own asks: a Ray client
    changes a process for good, and its server may wait for ever (ray 2.60). Raises ``ClusterUnavailable``."""
    reason, url = "", urlsplit(address)
    with raised_as(lambda error: _unreachable(address, str(error)), OSError, ValueError):
        socket.create_connection((url.hostname or "", url.port or _CLIENT_PORT), timeout=_CONNECT_SECONDS).close()
    for _ in range(_ATTEMPTS):
        try:
            command = [sys.executable, "-P", "-c", _ASK, address]
            answer = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            reason = f"no answer in {_SECONDS:.0f} s"
            continue
        if answer.returncode == 0:
            return answer.stdout.split()[-1]
        reason = answer.stderr
    raise _unreachable(address, reason)


def _unreachable(address: str, reason: str) -> ClusterUnavailable:
    last = (reason.strip().splitlines() or ["no answer"])[-1]
    mend = "give the address of its dashboard, http://HOST:8265, or of its clients, ray://HOST:10001"
    return ClusterUnavailable(f"no Ray cluster answers at {address} ({last}): {mend}")
