"""Runs as jobs of Slurm, each a `sbatch` of Dagster's own command for a run; `squeue` says which still are there. Slurm
repeats nothing (``--no-requeue``): Dagster repeats a lost run, under another id."""

import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
from dagster._grpc.types import ExecuteRunArgs

from darkroom.assets.clusters.placement import RunSettings, forwarded
from darkroom.assets.clusters.worker import RUNNING, CheckRunHealthResult, LaunchRunContext, RunLauncher, lost
from darkroom.sandbox.errors import UserError

JOB_TAG = "darkroom/slurm_job"
_FRESH_SECONDS = 5.0
"""For so long one answer of `squeue` is good for all runs: controllers don't like to be asked a thousand times."""
_LEFT_SECONDS = 15.0
"""After a job has left the queue, its last events may still be on their way."""
_LOG_CHARACTERS = 2000


class SlurmRunLauncher(RunLauncher[dg.DagsterInstance]):
    """A run is a job of its own; scripts and logs are in ``<DAGSTER_HOME>/slurm``, which all machines must share."""

    supports_check_run_worker_health = True

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self._queued: set[str] = set()
        self._asked_at = float("-inf")
        self._missed_at: dict[str, float] = {}
        super().__init__()  # type: ignore[no-untyped-call]

    def launch_run(self, context: LaunchRunContext) -> None:
        """Raises ``UserError`` if Slurm is not there, or does not take the job."""
        run = context.dagster_run
        assert run.job_code_origin is not None  # of every submitted run
        instance, origin = self._instance.get_ref(), run.job_code_origin
        command = ExecuteRunArgs(origin, run.run_id, instance, set_exit_code_on_failure=True).get_command_args()
        script = self._folder / f"{run.run_id}.sbatch"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.touch(mode=0o600)  # it holds what the databases' URLs hold
        script.write_text(slurm_script(command, forwarded(), self._options(run)))
        job = _slurm("sbatch", "--parsable", str(script)).partition(";")[0].strip()
        script.unlink()  # Slurm has its copy
        self._instance.add_run_tags(run.run_id, {JOB_TAG: f"{run.run_id}/{job}"})
        self._instance.report_engine_event(f"Slurm job {job}", run, cls=self.__class__)

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        job = _job(run) if run is not None and not run.is_finished else ""
        if not job or run is None:
            return False
        self._instance.report_run_canceling(run)
        _slurm("scancel", job)
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Raises ``UserError`` while Slurm does not answer; run monitoring asks again."""
        job = _job(run)
        if time.monotonic() - self._asked_at > _FRESH_SECONDS:
            self._queued, self._asked_at = queued_jobs(), time.monotonic()
        if not job or job in self._queued:
            self._missed_at.pop(run.run_id, None)
            return RUNNING
        missed_at = self._missed_at.setdefault(run.run_id, time.monotonic())
        if time.monotonic() - missed_at < _LEFT_SECONDS:
            return RUNNING
        return lost(f"Slurm job {job} left the queue. {self._end_of_log(run)}")

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        return self._end_of_log(run) if include_container_logs else None

    def _options(self, run: dg.DagsterRun) -> list[str]:
        settings, n_gpus = self._settings, self._settings.gpus_of(run)
        return [
            f"--job-name=darkroom-{run.tags.get('dagster/partition', run.job_name)}",
            f"--output={self._log(run.run_id)}",
            *("--nodes=1", "--ntasks=1", "--no-requeue", "--export=ALL", f"--cpus-per-task={settings.n_cpus}"),
            *([f"--mem={settings.memory_mb}M"] if settings.memory_mb else []),
            *([f"--gpus-per-node={n_gpus}"] if n_gpus else []),
            *shlex.split(settings.options),
        ]

    @property
    def _folder(self) -> Path:
        return Path(self._instance.root_directory) / "slurm"

    def _log(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.log"

    def _end_of_log(self, run: dg.DagsterRun) -> str:
        log = self._log(run.run_id)
        return f"The end of {log}:\n{log.read_text(errors='replace')[-_LOG_CHARACTERS:]}" if log.is_file() else ""


def _job(run: dg.DagsterRun) -> str:
    """The id of the run's job; empty for a repeated run that was not submitted yet and has the tags of the first."""
    run_id, _, job = run.tags.get(JOB_TAG, "").partition("/")
    return job if run_id == run.run_id else ""


def slurm_script(command: Sequence[str], environment: Mapping[str, str], options: Sequence[str]) -> str:
    """A script for ``sbatch``. The program takes the shell's place, so that it is what Slurm signals."""
    lines = ["#!/bin/bash", *(f"#SBATCH {shlex.quote(option)}" for option in options), "set -eu"]
    lines += [f"export {variable}={shlex.quote(value)}" for variable, value in environment.items()]
    lines += [f"cd {shlex.quote(str(Path.cwd()))}", f"exec {shlex.join(command)}", ""]
    return "\n".join(lines)


def queued_jobs() -> set[str]:
    """The ids of this user's jobs that wait or run. Raises ``UserError``."""
    return set(_slurm("squeue", "--noheader", "--me", "--format", "%i").split())


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as error:
        raise UserError(f"there is no {command[0]} here: start runs on a machine of the Slurm cluster") from error
    except subprocess.CalledProcessError as error:
        raise UserError(f"{' '.join(command)}: {error.stderr.strip()}") from error
