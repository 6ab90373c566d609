"""One launch, from the command to the asset's materialisation: a program's messages become events of the run.

A cancellation is noted and obeyed between two looks at the job, not raised wherever the run happens to be: a library
that stores an event may swallow it, and a job that was just submitted would have no number yet. Events are logged, not
yielded: Dagster would raise a cancellation outside the generator.
"""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from darkroom.assets.launching.handoff import (
    HandedOverJob,
    SlurmJob,
    job_of,
    kubernetes_manifest,
    slurm_script,
    submit_to_slurm,
)
from darkroom.assets.launching.jobs import Ending, Job, LaunchError, LocalJob, RayJob, submission
from darkroom.assets.launching.launcher import LauncherResource, Program
from darkroom.assets.launching.order import FolderMessages, Order, StepLog, lasting_order, temporary_order
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.train.runs.supervisor import SAFE_PATH, VARIABLE

_SECONDS = {"local": 0.2}
_SECONDS_ELSEWHERE = 2.0
_FORWARDED = (
    "DARKROOM_HOME",
    "DARKROOM_LOCAL",
    "DARKROOM_SANDBOX_",
    "DARKROOM_JUDGE",
    "DARKROOM_METHODS",
    "DARKROOM_POLICY",
)
"""Prefixes of the variables that are written into a job of another machine. None holds a key, only a key's name."""


def launch(context: dg.AssetExecutionContext, program: Program, launcher: LauncherResource) -> dg.MaterializeResult:
    """Runs ``program``, logs every step as it happens, and returns the result.

    Cancelling the run ends the program and all its processes. Raises ``dg.Failure`` with the program's error message.
    """
    command = program.command(launcher.python, n_processes=launcher.n_processes)
    try:
        with ordered(program, launcher) as order:
            return _followed(context, program, order, launcher)
    except LaunchError as error:
        raise dg.Failure(str(error), metadata={"command": shlex.join(command)}, allow_retries=False) from error


def _followed(
    context: dg.AssetExecutionContext, program: Program, order: Order, launcher: LauncherResource
) -> dg.MaterializeResult:
    steps, reader = StepLog(context), FolderMessages(order.exchange.messages)
    # the op's context: Pipes 1.13 reads a property of the asset's that Dagster deprecates
    with dg.open_pipes_session(context.op_execution_context, dg.PipesEnvContextInjector(), reader) as session:
        job: Job | None = None
        ending: Ending | None = None
        try:
            with _noted_interrupts() as interrupts:
                job = start(program, order, launcher, session.get_bootstrap_env_vars())
                context.log.info("%s%s", job.where, ", taken over from an earlier run" if order.is_taken_over else "")
                if isinstance(job, HandedOverJob) and not isinstance(job, SlurmJob):
                    context.log_event(dg.AssetObservation(context.asset_key, metadata={"start_with": job.start_with}))
                while ending is None:
                    if interrupts:
                        raise dg.DagsterExecutionInterruptedError
                    steps.update(session)
                    time.sleep(_SECONDS.get(launcher.kind, _SECONDS_ELSEWHERE))
                    ending = job.ended(closed=session.message_handler.received_closed_message)
        except LaunchError:
            raise  # not started, or unreachable: it may still run, and the next run takes it over
        except BaseException:
            context.log.info("the run was interrupted: ending %s", job.where if job else "the job, if one was started")
            if job is not None:
                job.stop()
            order.exchange.stop.touch()
            raise
    steps.update(session)
    return _result(session, order, job, ending)


@contextmanager
def _noted_interrupts() -> Iterator[list[int]]:
    """The signals that cancelled the run meanwhile; raised as ``dg.DagsterExecutionInterruptedError`` at the end."""
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals  # they reach the main thread only
        return
    handlers = {
        number: signal.signal(number, lambda number, _: signals.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield signals
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if signals:
        raise dg.DagsterExecutionInterruptedError


def _result(session: dg.PipesSession, order: Order, job: Job, ending: Ending) -> dg.MaterializeResult:
    """Raises ``LaunchError`` for a program that failed."""
    if not ending.can_be_taken_over:
        order.over()
    if not ending.succeeded:
        raise LaunchError(order.exchange.last_words() or ending.words)
    metadata = {"ran_on": job.where, "command": shlex.join(order.command)}
    return dg.PipesClientCompletedInvocation(session, metadata=metadata).get_materialize_result()


def run_here(program: Program) -> None:
    """Runs a program without messages to its end. Raises ``LaunchError`` with its error message."""
    with temporary_order(program.command(sys.executable)) as order:
        job = LocalJob(order.command, {VARIABLE: str(order.exchange.folder)})
        try:
            while (ending := job.ended(closed=False)) is None:
                time.sleep(_SECONDS["local"])
        except BaseException:
            job.stop()
            raise
        if not ending.succeeded:
            raise LaunchError(order.exchange.last_words() or ending.words)


@contextmanager
def ordered(program: Program, launcher: LauncherResource) -> Iterator[Order]:
    """The order of a program, in a folder that exists as long as its job."""
    command = program.command(launcher.python, n_processes=launcher.n_processes)
    if launcher.kind == "local":
        with temporary_order(command) as order:
            yield order
    else:
        yield lasting_order(command, program.output)


def start(program: Program, order: Order, launcher: LauncherResource, pipes: Mapping[str, str]) -> Job:
    """Starts the job, or takes it over. ``pipes``: variables of Dagster Pipes. Raises ``LaunchError``."""
    environment = {VARIABLE: str(order.exchange.folder), **pipes}
    if launcher.kind == "local":
        return LocalJob(order.command, environment)
    environment |= SAFE_PATH | {name: value for name, value in os.environ.items() if name.startswith(_FORWARDED)}
    if launcher.kind == "ray":
        return _on_ray(program, order, launcher, environment)
    if launcher.kind == "slurm":
        return _on_slurm(program, order, launcher, environment)
    return _on_kubernetes(program, order, launcher, environment)


def _on_ray(program: Program, order: Order, launcher: LauncherResource, environment: Mapping[str, str]) -> Job:
    if order.job_id:
        return RayJob(launcher.url, order.job_id)
    job = RayJob.submit(launcher.url, submission(order.command, environment, launcher, name=program.name))
    order.on_its_way(job.job_id)
    return job


def _on_slurm(program: Program, order: Order, launcher: LauncherResource, environment: Mapping[str, str]) -> Job:
    script = order.exchange.folder / "job.sbatch"
    if order.job_id:
        return SlurmJob(order.exchange, order.job_id)
    if not order.is_taken_over:
        log = order.exchange.folder / "log-%j"
        script.write_text(slurm_script(order.command, environment, launcher, name=program.name, log=log))
        order.on_its_way("")
    if launcher.submit and (job_id := _submitted(order, script)):
        order.on_its_way(job_id)
        return SlurmJob(order.exchange, job_id)
    return _handed_over(order, launcher, f"sbatch {shlex.quote(str(script))}")


def _submitted(order: Order, script: Path) -> str:
    """The id of the script's job, which is submitted only once; empty when it has run already."""
    if order.is_taken_over and (job_id := job_of(script)):
        return job_id
    return "" if order.exchange.alive.exists() else submit_to_slurm(script)


def _on_kubernetes(program: Program, order: Order, launcher: LauncherResource, environment: Mapping[str, str]) -> Job:
    for name, value in (("image", launcher.image), ("claim", launcher.claim)):
        if not value:
            raise LaunchError(f"Kubernetes needs the launcher's `{name}`: set DARKROOM_LAUNCH_{name.upper()}")
    manifest = order.exchange.folder / "job.yaml"
    if not order.is_taken_over:
        home = Workspace.from_environment().local
        manifest.write_text(kubernetes_manifest(order.command, environment, launcher, name=program.name, home=home))
        order.on_its_way("")
    return _handed_over(order, launcher, f"kubectl create -f {shlex.quote(str(manifest))}")


def _handed_over(order: Order, launcher: LauncherResource, start_with: str) -> HandedOverJob:
    return HandedOverJob(order.exchange, start_with=start_with, wait_hours=launcher.wait_hours)
