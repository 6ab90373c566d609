"""Which process works on a run, and whether it is gone: Dagster itself doesn't look after a run that has started.

    darkroom/worker: 8a1c…/host-3/812/90411        run, host, process, and when that started

The tag names its run: a retry inherits the tags of the run that it repeats.
"""

import os
import socket

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus

from pipelines.storage.process_identity import stat_of

WORKER_TAG = "darkroom/worker"


def worker_tags(run_id: str) -> dict[str, str]:
    """For a run that this process works on."""
    return {WORKER_TAG: f"{run_id}/{socket.gethostname()}/{_process(os.getpid())}"}


def is_abandoned(run: dg.DagsterRun) -> bool:
    """Whether the run's process was one of this machine and is gone."""
    run_id, host, *process = (run.tags.get(WORKER_TAG) or "//").split("/", 3)
    if run_id != run.run_id or host != socket.gethostname():
        return False
    return _process(int(process[0])) != "/".join(process)


def _process(pid: int) -> str:
    stat = stat_of(pid)
    return f"{pid}/{stat.start_ticks if stat else 'gone'}"


class LocalRunLauncher(dg.DefaultRunLauncher):
    """Dagster's own launcher, with the answer that run monitoring asks for: a run whose process is gone has failed."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        if is_abandoned(run):
            return CheckRunHealthResult(WorkerStatus.FAILED, "its process is gone")
        return CheckRunHealthResult(WorkerStatus.RUNNING)
