"""Failures of runs, as a command prints them."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from darkroom.sandbox.errors import SandboxError, UserError

_ENDINGS = {
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_CANCELED,
}


class MaterializationFailed(UserError):
    """A job failed: the asset and its error message."""


def failures_here(run: dg.ExecuteInProcessResult) -> list[str]:
    """Why a run of this process failed: the checks and the first error of each step."""
    steps = [
        f"{event.step_key}: {root_cause(event.step_failure_data)}" for event in run.all_events if event.is_step_failure
    ]
    checks = [
        f"check {check.check_name} of {check.asset_key.to_user_string()} failed: "
        + ", ".join(f"{name} {value.value}" for name, value in check.metadata.items())
        for check in run.get_asset_check_evaluations()
        if not check.passed and check.severity == dg.AssetCheckSeverity.ERROR
    ]
    return checks + steps or ["the run failed; see it in the UI"]


def failures_on_cluster(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[str]:
    """Why a run elsewhere failed: the first error of each step; of a lost run, what was noticed."""
    logs = instance.all_logs(run.run_id, of_type=_ENDINGS)
    events = [log.dagster_event for log in logs if log.dagster_event]
    steps = [f"{event.step_key}: {root_cause(event.step_failure_data)}" for event in events if event.is_step_failure]
    return steps or [event.message or "failed" for event in events if not event.is_step_failure]


def root_cause(failure: Any) -> str:
    """The message of a failed step to print: the error that was raised for users, else the first one with its class.

    The whole trace is in the UI.
    """
    error, for_users = failure.error, {kind.__name__ for kind in _subclasses(UserError, SandboxError)}
    while error is not None and error.cause is not None and error.cls_name not in for_users:
        error = error.cause
    if error is None:
        return "failed"
    text: str = error.message.strip()
    return text.partition(": ")[2] if error.cls_name in for_users else text


def is_interrupt(failure: Any) -> bool:
    """True if a step failed by Ctrl-C, which Dagster makes a failure of it."""
    error, names = failure.error, {dg.DagsterExecutionInterruptedError.__name__, KeyboardInterrupt.__name__}
    while error is not None and error.cls_name not in names:
        error = error.cause
    return error is not None


def _subclasses(*kinds: type[Exception]) -> Iterator[type[Exception]]:
    for kind in kinds:
        yield from (kind, *_subclasses(*kind.__subclasses__()))
