"""Materialises jobs in this process, on the instance that the UI shows, with a line per asset in the terminal."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from rich.console import Console

from assets.home import process_tags
from assets.progress import shown_by

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class MaterializationFailed(Exception):
    """A job did not succeed: which asset, and what it said."""


def materialize(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    console: Console,
    *,
    partition: str | None = None,
    settings: Mapping[str, Any] | None = None,
    only: Sequence[dg.AssetKey] | None = None,
) -> None:
    """Runs ``job`` and prints what came of every asset; ``settings`` are the assets' own, by name of their step.
    ``only`` are the assets of the job to materialise; None: all.

    Raises ``MaterializationFailed``.
    """
    title = f"{job.name} {partition}" if partition else job.name
    started = time.monotonic()
    with console.status(f"{title} …") as status, shown_by(lambda said: status.update(f"{title} …  {said}")):
        result = job.execute_in_process(
            instance=instance,
            partition_key=partition,
            run_config={**_QUIET, "ops": {step: {"config": config} for step, config in (settings or {}).items()}},
            tags=process_tags(),
            asset_selection=only,
            raise_on_error=False,
        )
    console.print(f"[bold]{title}[/bold]  {time.monotonic() - started:.1f} s")
    durations = _durations(result)
    for event in result.get_asset_materialization_events():
        made = event.step_materialization_data.materialization
        console.print(_line(made, durations.get(event.step_key)), highlight=False, soft_wrap=True)
    if not result.success:
        raise MaterializationFailed("\n".join(_failures(result)))


_N_FINALS = 3
_COUNTS = (("rows_in", "in"), ("rows_out", "out"), ("rejected", "rejected"), ("quarantined", "quarantined"))


def _line(made: dg.AssetMaterialization, seconds: float | None) -> str:
    values = {name: value.value for name, value in made.metadata.items()}
    counts = [f"{values[name]:>6,} {label}" for name, label in _COUNTS if name in values]
    finals = [
        f"  {name.replace('_', ' ')} {value:.3g}"
        for name, value in values.items()
        if name.startswith("final_") and value is not None
    ][:_N_FINALS]
    took = f"  {seconds:.1f} s" if seconds is not None else ""
    marks = "  [dim](unchanged)[/dim]" if values.get("reused") else ""
    return f"  {made.asset_key.to_user_string():<34}{''.join(counts + finals)}{took}{marks}"


def _durations(result: dg.ExecuteInProcessResult) -> dict[str | None, float]:
    """Seconds of every step that succeeded."""
    return {
        event.step_key: event.step_success_data.duration_ms / 1000
        for event in result.all_events
        if event.is_step_success
    }


def _root_cause(failure: Any) -> str:
    """The first cause, in its own words; the whole trace is in the UI."""
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return error.message.strip() if error is not None else "failed"


def _failures(result: dg.ExecuteInProcessResult) -> list[str]:
    said = [
        f"{event.step_key}: {_root_cause(event.step_failure_data)}"
        for event in result.all_events
        if event.is_step_failure
    ]
    checks = [
        f"check {found.check_name} of {found.asset_key.to_user_string()} failed: "
        + ", ".join(f"{name} {value.value}" for name, value in found.metadata.items())
        for found in result.get_asset_check_evaluations()
        if not found.passed
    ]
    return checks + said or ["the run failed; see it in the UI"]
