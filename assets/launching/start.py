"""Starts a program where the launcher says, or writes the job that somebody will start."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from assets.launching.handover import HandedOverJob, SlurmJob, job_of, submit_to_slurm
from assets.launching.job import Job, LaunchFault
from assets.launching.launcher import LauncherResource
from assets.launching.local import LocalJob
from assets.launching.order import Order, lasting_order, temporary_order
from assets.launching.program import Program
from assets.launching.ray import RayJob, submission
from assets.launching.scripts import kubernetes_manifest, slurm_script
from pipelines.workspace import Workspace
from train.exchange import VARIABLE

_PASSED_ON = ("DARKROOM_HOME", "DARKROOM_SANDBOX_", "DARKROOM_JUDGE", "DARKROOM_POLICY")
"""Beginnings of variables that a job of another machine is given. None holds a key: those are named, never written."""


@contextmanager
def ordered(program: Program, launcher: LauncherResource) -> Iterator[Order]:
    """The order of a program, in a folder that lasts as long as its job may."""
    command = program.command(launcher.python, n_processes=launcher.n_processes)
    if launcher.kind == "local":
        with temporary_order(command) as order:
            yield order
    else:
        yield lasting_order(command, program.output)


def start(program: Program, order: Order, launcher: LauncherResource, pipes: Mapping[str, str]) -> Job:
    """Starts it, or takes over what was started. ``pipes`` are Dagster Pipes' variables. Raises ``LaunchFault``."""
    environment = {VARIABLE: str(order.exchange.folder), **pipes}
    if launcher.kind == "local":
        return LocalJob(order.command, environment)
    environment |= {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    if launcher.kind == "ray":
        return _on_ray(program, order, launcher, environment)
    if launcher.kind == "slurm":
        return _on_slurm(program, order, launcher, environment)
    return _on_kubernetes(program, order, launcher, environment)


def _on_ray(program: Program, order: Order, launcher: LauncherResource, environment: Mapping[str, str]) -> Job:
    if order.job_id:
        return RayJob(launcher.url, order.job_id)
    body = submission(order.command, environment, folder=launcher.folder, n_gpus=launcher.n_gpus, name=program.name)
    job = RayJob.submit(launcher.url, body)
    order.on_its_way(job.job_id)
    return job


def _on_slurm(program: Program, order: Order, launcher: LauncherResource, environment: Mapping[str, str]) -> Job:
    script = order.exchange.folder / "job.sbatch"
    if order.job_id:
        return SlurmJob(order.exchange, order.job_id)
    if not order.is_taken_over:
        text = slurm_script(
            order.command,
            environment,
            name=program.name,
            folder=launcher.folder,
            log=order.exchange.folder / "log-%j",
            n_gpus=launcher.n_gpus,
            options=launcher.options,
        )
        script.write_text(text)
        order.on_its_way("")
    if launcher.submit and (job_id := _submitted(order, script)):
        order.on_its_way(job_id)
        return SlurmJob(order.exchange, job_id)
    return _handed_over(order, launcher, f"sbatch {shlex.quote(str(script))}")


def _submitted(order: Order, script: Path) -> str:
    """The number of the script's job, which Slurm is given once, whoever did; empty when it has run."""
    if order.is_taken_over and (job_id := job_of(script)):
        return job_id
    return "" if order.exchange.alive.exists() else submit_to_slurm(script)


def _on_kubernetes(program: Program, order: Order, launcher: LauncherResource, environment: Mapping[str, str]) -> Job:
    for name, value in (("image", launcher.image), ("claim", launcher.claim)):
        if not value:
            raise LaunchFault(f"Kubernetes needs the launcher's `{name}`: set DARKROOM_LAUNCH_{name.upper()}")
    manifest = order.exchange.folder / "job.yaml"
    if not order.is_taken_over:
        text = kubernetes_manifest(
            order.command,
            environment,
            name=program.name,
            folder=launcher.folder,
            image=launcher.image,
            claim=launcher.claim,
            home=_home(),
            n_gpus=launcher.n_gpus,
        )
        manifest.write_text(text)
        order.on_its_way("")
    return _handed_over(order, launcher, f"kubectl create -f {shlex.quote(str(manifest))}")


def _handed_over(order: Order, launcher: LauncherResource, start_with: str) -> HandedOverJob:
    return HandedOverJob(order.exchange, start_with=start_with, wait_hours=launcher.wait_hours)


def _home() -> Path:
    return Workspace.from_environment().home
