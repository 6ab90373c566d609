"""A program as a job of a Ray cluster, over the REST interface of its dashboard: nothing of Ray is installed here.

A cluster that wants a token is given ``RAY_AUTH_TOKEN`` of the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from assets.launching.job import Ending, LaunchFault
from assets.launching.program import shell_line

_OVER = {"STOPPED", "SUCCEEDED", "FAILED"}
_SECONDS, _STOP_SECONDS = 30.0, 30.0
_UNREACHABLE_SECONDS = 600.0
_N_WORDS = 2000


class RayUnreachable(LaunchFault):
    """Nobody answers at the cluster's address."""


def submission(
    command: Sequence[str], environment: Mapping[str, str], *, folder: str, n_gpus: int, name: str
) -> dict[str, Any]:
    """The job as the interface takes it. The entry point is a line for a shell."""
    return {
        "entrypoint": f"cd {shell_line([folder])} && exec {shell_line(command)}",
        "runtime_env": {"env_vars": dict(environment)},
        "metadata": {"name": name},
        "entrypoint_num_cpus": 1,
        **({"entrypoint_num_gpus": n_gpus} if n_gpus else {}),
    }


class RayJob:
    """A job that was submitted, by its id."""

    def __init__(self, url: str, job_id: str) -> None:
        self._url, self.job_id = url, job_id
        self._heard = time.monotonic()

    @classmethod
    def submit(cls, url: str, body: Mapping[str, Any]) -> RayJob:
        """Submits a job. Raises ``LaunchFault`` where nobody takes it."""
        return cls(url, _ask(url, "POST", "", body)["submission_id"])

    @property
    def where(self) -> str:
        """The job, and the cluster's page."""
        return f"Ray job {self.job_id} on {self._url}"

    def ended(self, *, closed: bool) -> Ending | None:
        """By the job's status; a failed job says its last lines. A cluster may be out of reach for a while."""
        try:
            found = _ask(self._url, "GET", self.job_id)
        except RayUnreachable:
            if time.monotonic() - self._heard > _UNREACHABLE_SECONDS:
                raise
            return None
        self._heard = time.monotonic()
        if found["status"] not in _OVER:
            return None
        if found["status"] == "SUCCEEDED":
            return Ending(True)
        logs = _ask(self._url, "GET", f"{self.job_id}/logs")["logs"][-_N_WORDS:]
        return Ending(False, f"{self.where} is {found['status']}: {found.get('message') or ''}\n{logs}")

    def stop(self) -> None:
        """Stops the job, which gets SIGTERM and, if that does not do, SIGKILL from Ray."""
        _ask(self._url, "POST", f"{self.job_id}/stop")
        deadline = time.monotonic() + _STOP_SECONDS
        while _ask(self._url, "GET", self.job_id)["status"] not in _OVER and time.monotonic() < deadline:
            time.sleep(0.5)


def _ask(url: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    token = os.environ.get("RAY_AUTH_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx2.request(
            method, f"{url.rstrip('/')}/api/jobs/{path}", json=body, headers=headers, timeout=_SECONDS
        )
    except httpx2.TransportError as fault:
        raise RayUnreachable(
            f"no Ray cluster answers at {url}: {fault}; DARKROOM_LAUNCH_URL is its dashboard's address"
        ) from fault
    if answer.is_error:
        raise LaunchFault(f"Ray at {url} answers {answer.status_code} to {method} {path or 'a new job'}: {answer.text}")
    found: dict[str, Any] = answer.json() if answer.text else {}
    return found
