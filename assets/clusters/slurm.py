"""Runs as jobs of Slurm, each a `sbatch` of Dagster's own command for a run; `squeue` says which still are there.

Slurm itself repeats nothing (``--no-requeue``): Dagster repeats a lost run, under another id.
"""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.launcher.base import RunLauncher
from dagster._grpc.types import ExecuteRunArgs

from darkroom.assets.clusters.run_launcher import RunSettings, forwarded
from darkroom.assets.launching import LauncherResource
from darkroom.assets.launching.handoff import cancel, queued_jobs, slurm_script, submit_to_slurm

JOB_TAG = "darkroom/slurm_job"
_FRESH_SECONDS = 5.0
"""For so long one answer of `squeue` is good for all runs: controllers don't like to be asked a thousand times."""
_LEFT_SECONDS = 15.0
"""After a job has left the queue, its last events may still be on their way."""
_LOG_CHARACTERS = 2000


def slurm_launcher(settings: RunSettings) -> SlurmRunLauncher:
    """Raises ``LaunchError`` where no Slurm answers."""
    queued_jobs()
    return SlurmRunLauncher(settings)


class SlurmRunLauncher(RunLauncher[dg.DagsterInstance]):
    """A run is a job of its own; scripts and logs are in ``<DAGSTER_HOME>/slurm``, which all machines must share."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self._queued: set[str] = set()
        self._asked_at = float("-inf")
        self._missed_at: dict[str, float] = {}
        super().__init__()  # type: ignore[no-untyped-call]

    def launch_run(self, context: LaunchRunContext) -> None:
        """Raises ``LaunchError`` where Slurm is not there, or does not take the job."""
        run = context.dagster_run
        assert run.job_code_origin is not None  # of every submitted run
        command = ExecuteRunArgs(
            job_origin=run.job_code_origin,
            run_id=run.run_id,
            instance_ref=self._instance.get_ref(),
            set_exit_code_on_failure=True,
        ).get_command_args()
        script = self._folder / f"{run.run_id}.sbatch"
        script.parent.mkdir(parents=True, exist_ok=True)
        words = ["--no-requeue", "--export=ALL", f"--cpus-per-task={self._settings.n_cpus}"]
        words += [f"--mem={self._settings.memory_mb}M"] if self._settings.memory_mb else []
        options = f"{shlex.join(words)} {self._settings.options}"
        script.touch(mode=0o600)  # it holds what the databases' URLs hold
        script.write_text(
            slurm_script(
                command,
                forwarded(),
                LauncherResource(options=options, folder=str(Path.cwd()), python=sys.executable),
                name=f"darkroom-{run.tags.get('dagster/partition', run.job_name)}",
                log=self._log(run.run_id),
            )
        )
        job = submit_to_slurm(script)
        script.unlink()  # Slurm has its copy
        self._instance.add_run_tags(run.run_id, {JOB_TAG: f"{run.run_id}/{job}"})
        self._instance.report_engine_event(f"Slurm job {job}", run, cls=self.__class__)

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        job = _job(run) if run is not None and not run.is_finished else ""
        if not job or run is None:
            return False
        self._instance.report_run_canceling(run)
        cancel(job)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Raises ``LaunchError`` while Slurm does not answer; run monitoring asks again."""
        job = _job(run)
        if not job or job in self._jobs():
            self._missed_at.pop(run.run_id, None)
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        missed_at = self._missed_at.setdefault(run.run_id, time.monotonic())
        if time.monotonic() - missed_at < _LEFT_SECONDS:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"Slurm job {job} left the queue. {self._end_of_log(run)}")

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        return self._end_of_log(run) if include_container_logs else None

    @property
    def _folder(self) -> Path:
        return Path(self._instance.root_directory) / "slurm"

    def _log(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.log"

    def _end_of_log(self, run: dg.DagsterRun) -> str:
        log = self._log(run.run_id)
        return f"The end of {log}:\n{log.read_text(errors='replace')[-_LOG_CHARACTERS:]}" if log.is_file() else ""

    def _jobs(self) -> set[str]:
        if time.monotonic() - self._asked_at > _FRESH_SECONDS:
            self._queued, self._asked_at = queued_jobs(), time.monotonic()
        return self._queued


def _job(run: dg.DagsterRun) -> str:
    """The id of the run's job; empty for a repeated run that was not submitted yet and has the tags of the first."""
    run_id, _, job = run.tags.get(JOB_TAG, "").partition("/")
    return job if run_id == run.run_id else ""
