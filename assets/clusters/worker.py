"""Workers of runs: which process works on a run, and whether it is gone.

    darkroom/worker: 8a1c…/host-3/812/90411        run, host, process, and when that started

Dagster itself doesn't look after a run that has started. The tag names its run: a retry inherits the first one's tags.
"""

import os
import socket

import dagster as dg
from dagster._core.launcher import (  # Dagster's own, for all launchers
    CheckRunHealthResult as CheckRunHealthResult,
    LaunchRunContext as LaunchRunContext,
    RunLauncher as RunLauncher,
    WorkerStatus,
)

from darkroom.pipelines.storage.process_identity import known_process, runs

WORKER_TAG = "darkroom/worker"
RUNNING = CheckRunHealthResult(WorkerStatus.RUNNING)


def lost(reason: str) -> CheckRunHealthResult:
    """The answer to run monitoring that a run's worker is gone."""
    return CheckRunHealthResult(WorkerStatus.FAILED, reason)


def is_lost(health: CheckRunHealthResult) -> bool:
    return health.status == WorkerStatus.FAILED


def worker_tags(run_id: str) -> dict[str, str]:
    return {WORKER_TAG: f"{run_id}/{socket.gethostname()}/{known_process(os.getpid())}"}


def host_of(run: dg.DagsterRun) -> str:
    """The machine that works, or worked, on the run; empty before it began."""
    run_id, host, _ = (run.tags.get(WORKER_TAG) or "//").split("/", 2)
    return host if run_id == run.run_id else ""


def is_abandoned(run: dg.DagsterRun) -> bool:
    """True if the run's process was one of this machine and is gone."""
    run_id, host, process = (run.tags.get(WORKER_TAG) or "//").split("/", 2)
    # the host's name, not its boot: a machine that was restarted knows that its runs are gone
    return run_id == run.run_id and host == socket.gethostname() and not runs(process)


class LocalRunLauncher(dg.DefaultRunLauncher):
    """Dagster's own launcher, with the answer that run monitoring asks for: a run whose process is gone has failed."""

    supports_check_run_worker_health = True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        return lost("its process is gone") if is_abandoned(run) else RUNNING
