"""Jobs that a person or Slurm starts: the script for sbatch, the manifest for Kubernetes, and how they report.

Such a job is followed by its messages, its signs of life and its last error message.
"""

import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from darkroom.assets.launching.jobs import Ending, LaunchError
from darkroom.assets.launching.launcher import LauncherResource
from darkroom.train.runs.supervisor import JobDirectory

SILENT_SECONDS = 600.0
"""A job that has begun and gives no sign of life for so long is taken for dead; it gives one every two seconds."""
_LEFT_SECONDS = 30.0
_STOP_SECONDS = 20.0
_LOG_CHARACTERS = 2000


class HandedOverJob:
    """A job that a user starts with the command ``start_with``."""

    def __init__(self, exchange: JobDirectory, *, start_with: str, wait_hours: float) -> None:
        self._exchange, self.start_with = exchange, start_with
        self._deadline = time.monotonic() + 3600 * wait_hours
        self._sign, self._sign_at = "", time.monotonic()

    @property
    def where(self) -> str:
        return f"handed over: {self.start_with}"

    def ended(self, *, closed: bool) -> Ending | None:
        """By its messages; also failed when it was not started in time, and when its signs of life stop."""
        words = self._exchange.last_words()
        if closed or words:
            return Ending(not words, words)
        # empty in the moment in which it is written
        sign, now = _text(self._exchange.alive) or self._sign, time.monotonic()
        if sign != self._sign:
            self._sign, self._sign_at = sign, now
        if not sign and now >= self._deadline:
            return Ending(
                False,
                f"the job was not started yet. Start it with\n\n    {self.start_with}\n\nand materialise the asset "
                "again: the messages of the job are kept and will be read.",
                can_be_taken_over=True,
            )
        if sign and now - self._sign_at > SILENT_SECONDS:
            return Ending(False, f"the job gave no sign of life for {SILENT_SECONDS:.0f} s. {self._log()}")
        return None

    def stop(self) -> None:
        """Leaves a stop file for the program; if it runs, waits a moment for its end."""
        self._exchange.stop.touch()
        deadline = time.monotonic() + _STOP_SECONDS
        running = self._exchange.alive.exists()
        while running and not self._exchange.last_words() and time.monotonic() < deadline:
            time.sleep(0.5)

    def _log(self) -> str:
        logs = sorted(self._exchange.folder.glob("log-*"))
        return f"The end of {logs[-1]}:\n{_text(logs[-1])[-_LOG_CHARACTERS:]}" if logs else ""


class SlurmJob(HandedOverJob):
    """A job that was submitted to Slurm here: its state can be queried, and it can be cancelled."""

    def __init__(self, exchange: JobDirectory, job_id: str) -> None:
        super().__init__(exchange, start_with="sbatch", wait_hours=float("inf"))
        self.job_id, self._left_at = job_id, float("inf")

    @property
    def where(self) -> str:
        return f"Slurm job {self.job_id}"

    def ended(self, *, closed: bool) -> Ending | None:
        """By its messages; after a job left the queue they may arrive a moment later."""
        if (ending := super().ended(closed=closed)) is not None:
            return ending
        if _is_queued(self.job_id):
            return None
        self._left_at = min(self._left_at, time.monotonic())
        if time.monotonic() - self._left_at < _LEFT_SECONDS:
            return None
        return Ending(False, f"{self.where} left the queue without a message. {self._log()}")

    def stop(self) -> None:
        """``scancel``; Slurm ends all processes of the job."""
        cancel(self.job_id)
        deadline = time.monotonic() + _STOP_SECONDS
        while _is_queued(self.job_id) and time.monotonic() < deadline:
            time.sleep(0.5)


def submit_to_slurm(script: Path) -> str:
    """Submits a script to Slurm; returns the job's id. Raises ``LaunchError``."""
    return _slurm("sbatch", "--parsable", str(script)).partition(";")[0].strip()


def job_of(script: Path) -> str:
    """The id of the job that waits or runs with a script; empty when there is none. Raises ``LaunchError``."""
    lines = _slurm("squeue", "--noheader", "--format", "%i %o").splitlines()
    jobs = {command: number for number, _, command in (line.strip().partition(" ") for line in lines)}
    return jobs.get(str(script), "")


def queued_jobs() -> set[str]:
    """The ids of this user's jobs that wait or run. Raises ``LaunchError``."""
    return set(_slurm("squeue", "--noheader", "--me", "--format", "%i").split())


def cancel(job_id: str) -> None:
    """Raises ``LaunchError``."""
    _slurm("scancel", job_id)


def _is_queued(job_id: str) -> bool:
    command = ["squeue", "--noheader", "--jobs", job_id, "--format", "%T"]
    query = subprocess.run(command, capture_output=True, text=True, check=False)
    # Slurm forgets jobs that ended a while ago, and then rejects their ids
    return bool(query.stdout.strip()) or (query.returncode != 0 and "Invalid job id" not in query.stderr)


def _slurm(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as error:
        raise LaunchError(
            f"there is no {command[0]} on this machine: start runs from a machine of the Slurm cluster; for training, "
            "set `submit` off (DARKROOM_LAUNCH_SUBMIT=0), and start the written script there"
        ) from error
    except subprocess.CalledProcessError as error:
        raise LaunchError(f"{' '.join(command)}: {error.stderr.strip()}") from error


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def slurm_script(
    command: Sequence[str], environment: Mapping[str, str], launcher: LauncherResource, *, name: str, log: Path
) -> str:
    """A script for ``sbatch``. The program takes the shell's place, so that it is what Slurm signals."""
    options = [f"--job-name={name}", f"--output={log}", "--nodes=1", "--ntasks=1"]
    options += [f"--gpus-per-node={launcher.n_gpus}"] if launcher.n_gpus else []
    options += shlex.split(launcher.options)
    exports = [f"export {variable}={shlex.quote(value)}" for variable, value in environment.items()]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH {shlex.quote(option)}" for option in options),
            "set -eu",
            *exports,
            f"cd {shlex.join([launcher.folder])}",
            f"exec {shlex.join(command)}",
            "",
        ]
    )


def kubernetes_manifest(
    command: Sequence[str], environment: Mapping[str, str], launcher: LauncherResource, *, name: str, home: Path
) -> str:
    """A ``batch/v1`` Job that runs once, with the volume claim mounted where the workspace is here."""
    container: dict[str, Any] = {
        "name": "train",
        "image": launcher.image,
        "command": list(command),
        "workingDir": launcher.folder,
        "env": [{"name": variable, "value": value} for variable, value in environment.items()],
        "volumeMounts": [{"name": "home", "mountPath": str(home)}],
    }
    if launcher.n_gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": launcher.n_gpus}}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": launcher.claim}}],
    }
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{name}-"},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }
    return yaml.safe_dump(manifest, sort_keys=False)
