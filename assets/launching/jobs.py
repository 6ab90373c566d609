"""Jobs that run a program: a process of this machine, a job of a Ray cluster; how each ends and is stopped.

Ray is called over the REST interface of its dashboard, so that nothing of Ray is installed here. A cluster that wants a
token gets ``RAY_AUTH_TOKEN`` of the environment.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from darkroom.assets.launching.forked import forked
from darkroom.sandbox.errors import UserError
from darkroom.train.runs.supervisor import GRACE_SECONDS, SAFE_PATH

if TYPE_CHECKING:
    from darkroom.assets.launching.launcher import LauncherResource

_ENDED = {"STOPPED", "SUCCEEDED", "FAILED"}
_RAY_SECONDS, _RAY_STOP_SECONDS = 30.0, 30.0
_UNREACHABLE_SECONDS = 600.0
_LOG_CHARACTERS = 2000


class LaunchError(UserError):
    """A program could not be started, or failed: what happened, and what to do."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended; ``words``: the error message of a failure."""

    succeeded: bool
    words: str = ""
    can_be_taken_over: bool = False
    """Whether a later run may still read its messages."""


class Job(Protocol):
    """A started program, wherever it runs."""

    @property
    def where(self) -> str:
        """The process or job, for people."""

    def ended(self, *, closed: bool) -> Ending | None:
        """None while it runs. ``closed``: the program has closed its message stream."""

    def stop(self) -> None:
        """Ends the program and its processes; returns when they ended or, in a queue, when the end was requested."""


class LocalJob:
    """Starts when it is made. Its output goes to the descriptor ``output``; None: where Dagster's goes, into the run's
    logs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], *, output: int | None = None) -> None:
        self._process = forked(command, environment, output) or subprocess.Popen(
            [sys.executable, "-m", "darkroom.train.runs.supervisor", str(os.getpid()), *command],
            env={**os.environ, **SAFE_PATH, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    @property
    def where(self) -> str:
        return f"this machine, process {self._process.pid}"

    def ended(self, *, closed: bool) -> Ending | None:
        status = self._process.poll()
        return None if status is None else Ending(status == 0, f"it ended with exit status {status}")

    def stop(self) -> None:
        """Terminates it, and kills it after the grace time."""
        self._process.terminate()
        try:
            self._process.wait(GRACE_SECONDS + 5)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its command dies with it
            self._process.wait()


class RayUnreachable(LaunchError):
    """No answer at the cluster's address."""


def submission(
    command: Sequence[str], environment: Mapping[str, str], launcher: LauncherResource, *, name: str
) -> dict[str, Any]:
    """The request body of a job. Its entry point is a shell command."""
    return {
        "entrypoint": f"cd {shlex.join([launcher.folder])} && exec {shlex.join(command)}",
        "runtime_env": {"env_vars": dict(environment)},
        "metadata": {"name": name},
        "entrypoint_num_cpus": 1,
        **({"entrypoint_num_gpus": launcher.n_gpus} if launcher.n_gpus else {}),
    }


class RayJob:
    """A submitted job of a Ray cluster."""

    def __init__(self, url: str, job_id: str) -> None:
        self._url, self.job_id = url, job_id
        self._answered_at = time.monotonic()

    @classmethod
    def submit(cls, url: str, body: Mapping[str, Any]) -> RayJob:
        """Submits a job. Raises ``LaunchError`` when the cluster is unreachable or rejects it."""
        return cls(url, _request(url, "POST", "", body)["submission_id"])

    @property
    def where(self) -> str:
        return f"Ray job {self.job_id} on {self._url}"

    def ended(self, *, closed: bool) -> Ending | None:
        """By the job's status; a failed job with the end of its log. A cluster may be unreachable for a while."""
        try:
            job = _request(self._url, "GET", self.job_id)
        except RayUnreachable:
            if time.monotonic() - self._answered_at > _UNREACHABLE_SECONDS:
                raise
            return None
        self._answered_at = time.monotonic()
        if job["status"] not in _ENDED:
            return None
        if job["status"] == "SUCCEEDED":
            return Ending(True)
        logs = _request(self._url, "GET", f"{self.job_id}/logs")["logs"][-_LOG_CHARACTERS:]
        return Ending(False, f"{self.where} is {job['status']}: {job.get('message') or ''}\n{logs}")

    def stop(self) -> None:
        """Stops the job: Ray sends SIGTERM and, if it does not end, SIGKILL."""
        _request(self._url, "POST", f"{self.job_id}/stop")
        deadline = time.monotonic() + _RAY_STOP_SECONDS
        while _request(self._url, "GET", self.job_id)["status"] not in _ENDED and time.monotonic() < deadline:
            time.sleep(0.5)


def _request(url: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    token = os.environ.get("RAY_AUTH_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx2.request(
            method, f"{url.rstrip('/')}/api/jobs/{path}", json=body, headers=headers, timeout=_RAY_SECONDS
        )
    except httpx2.TransportError as error:
        raise RayUnreachable(
            f"no Ray cluster answers at {url}: {error}; set DARKROOM_LAUNCH_URL to the URL of its dashboard"
        ) from error
    if answer.is_error:
        raise LaunchError(f"Ray at {url} answers {answer.status_code} to {method} {path or 'a new job'}: {answer.text}")
    fields: dict[str, Any] = answer.json() if answer.text else {}
    return fields
