"""One launch, from the command to the asset's materialisation: what the program reports becomes events of the run.

Events are logged, not yielded: while Dagster stores what a generator yields it keeps a cancellation back, and raises it
where the generator does not hear of it.
"""

from __future__ import annotations

import time

import dagster as dg

from assets.launching.handover import HandedOverJob, SlurmJob
from assets.launching.job import Ending, Job, LaunchFault
from assets.launching.launcher import LauncherResource
from assets.launching.messages import FolderMessages, Steps
from assets.launching.order import Order
from assets.launching.program import Program, shell_line
from assets.launching.start import ordered, start

_SECONDS = {"local": 0.2}
_SECONDS_ELSEWHERE = 2.0


def launch(context: dg.AssetExecutionContext, program: Program, launcher: LauncherResource) -> dg.MaterializeResult:
    """Runs ``program``, logs every step as it happens, and returns the result.

    When the run is cancelled the program ends, with all that it started. Raises ``dg.Failure`` with the program's last
    words.
    """
    command = program.command(launcher.python, n_processes=launcher.n_processes)
    try:
        with ordered(program, launcher) as order:
            return _followed(context, program, order, launcher)
    except LaunchFault as fault:
        raise dg.Failure(str(fault), metadata={"command": shell_line(command)}, allow_retries=False) from fault


def _followed(
    context: dg.AssetExecutionContext, program: Program, order: Order, launcher: LauncherResource
) -> dg.MaterializeResult:
    steps, reader = Steps(context), FolderMessages(order.exchange.messages)
    # the op's context: of the asset's, Pipes 1.13 reads a property that Dagster itself deprecates
    with dg.open_pipes_session(context.op_execution_context, dg.PipesEnvContextInjector(), reader) as session:
        job: Job | None = None
        ending: Ending | None = None
        try:
            job = start(program, order, launcher, session.get_bootstrap_env_vars())
            context.log.info("%s%s", job.where, ", taken over from an earlier run" if order.is_taken_over else "")
            if isinstance(job, HandedOverJob) and not isinstance(job, SlurmJob):
                context.log_event(dg.AssetObservation(context.asset_key, metadata={"start_with": job.start_with}))
            while ending is None:
                steps.tell(session)
                time.sleep(_SECONDS.get(launcher.kind, _SECONDS_ELSEWHERE))
                ending = job.ended(closed=session.message_handler.received_closed_message)
        except LaunchFault:
            raise  # not started, or out of reach: then it may be well, and the next run takes it over
        except BaseException:
            context.log.info("the run is interrupted: ending %s", job.where if job else "what may have been started")
            _stop(order, job)
            raise
    steps.tell(session)
    return _result(session, order, job, ending)


def _stop(order: Order, job: Job | None) -> None:
    if job is not None:
        job.stop()
    order.exchange.stop.touch()


def _result(session: dg.PipesSession, order: Order, job: Job, ending: Ending) -> dg.MaterializeResult:
    """Raises ``LaunchFault`` for a program that failed."""
    if not ending.can_be_taken_over:
        order.over()
    if not ending.succeeded:
        raise LaunchFault(order.exchange.last_words() or ending.words)
    metadata = {"ran_on": job.where, "command": shell_line(order.command)}
    return dg.PipesClientCompletedInvocation(session, metadata=metadata).get_materialize_result()
