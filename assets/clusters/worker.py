"""Which process works on a run, and whether it is gone: Dagster itself doesn't look after a run that has started.

    darkroom/worker: 8a1c…/host-3/812/90411        run, host, process, and when that started

The tag names its run: a retry inherits the tags of the run that it repeats.
"""

import os
import socket

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus

from darkroom.pipelines.storage.leases import known_process, runs

WORKER_TAG = "darkroom/worker"


def worker_tags(run_id: str) -> dict[str, str]:
    """For a run that this process works on."""
    return {WORKER_TAG: f"{run_id}/{socket.gethostname()}/{known_process(os.getpid())}"}


def host_of(run: dg.DagsterRun) -> str:
    """The machine that works, or worked, on the run; empty before it began."""
    run_id, host, _ = (run.tags.get(WORKER_TAG) or "//").split("/", 2)
    return host if run_id == run.run_id else ""


def is_abandoned(run: dg.DagsterRun) -> bool:
    """Whether the run's process was one of this machine and is gone."""
    run_id, host, process = (run.tags.get(WORKER_TAG) or "//").split("/", 2)
    # the host's name, not its boot: a machine that was restarted knows that its runs are gone
    return run_id == run.run_id and host == socket.gethostname() and not runs(process)


class LocalRunLauncher(dg.DefaultRunLauncher):
    """Dagster's own launcher, with the answer that run monitoring asks for: a run whose process is gone has failed."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        if is_abandoned(run):
            return CheckRunHealthResult(WorkerStatus.FAILED, "its process is gone")
        return CheckRunHealthResult(WorkerStatus.RUNNING)
