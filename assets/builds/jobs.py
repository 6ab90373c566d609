"""The jobs of one command, on the Dagster instance that the UI shows: a line per asset, wherever they run."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import dagster as dg
from rich.console import Console
from rich.status import Status

from darkroom.assets.builds.unfinished_shards import UnfinishedShards, are_shipped
from darkroom.assets.clusters.placement import LOCAL
from darkroom.assets.clusters.queued_runs import QueuedRuns
from darkroom.assets.clusters.run_launcher import check_placement
from darkroom.assets.clusters.worker import host_of, worker_tags
from darkroom.assets.dagster_home import instance as dagster_home
from darkroom.assets.dagster_home.daemon import daemon
from darkroom.assets.definitions import DATASETS, SAMPLES, definitions, op_config
from darkroom.assets.graph.partitions import update_partitions
from darkroom.assets.graph.resources import policies
from darkroom.assets.graph.stage_assets import pending_answers
from darkroom.assets.terminal import progress_bar
from darkroom.assets.terminal.run_lines import FirstTrajectory, OnAsset, RunLines, materialization_line
from darkroom.pipelines.sources.source_config import Use
from darkroom.pipelines.storage.row_files import by_key
from darkroom.pipelines.storage.storage_errors import AnswersPending
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import SandboxError, UserError

# of a stage that waits for batches: those after it are skipped, with their checks
logging.getLogger("dagster._core.execution.plan.active").setLevel(logging.ERROR)
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_SECONDS = 2.0
_AWAY_SECONDS = 600.0
_T = TypeVar("_T")
_ENDINGS = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_CANCELED}


class MaterializationFailed(UserError):
    """A job failed: the asset and its error message."""


class ShardRun(NamedTuple):
    """Assets of a job that a run makes on one shard, with their settings by op name."""

    only: Sequence[dg.AssetKey] | None = None
    settings: Mapping[str, Any] | None = None


class Jobs:
    """Run jobs by name: here, or on the cluster ``runs_on``."""

    def __init__(
        self, console: Console, workspace: Workspace, instance: dg.DagsterInstance, runs_on: str, on_asset: OnAsset
    ) -> None:
        self.console, self.workspace, self._instance, self.runs_on = console, workspace, instance, runs_on
        self._definitions, self._on_asset = cache(definitions), on_asset  # what is finished needs no definitions
        self._pending: list[AnswersPending] = []
        self._read: set[str] = set()

    def run(self, name: str, **chosen: Any) -> None:
        """Run a job here, ``chosen`` as in ``materialize``. Raises ``MaterializationFailed``."""
        job = self._definitions().resolve_job_def(name)
        self._pending += materialize(job, self._instance, self.console, on_asset=self._on_asset, **chosen)

    def run_shards(self, name: str, work: Mapping[str, ShardRun]) -> None:
        """Run a job on each shard of ``work``: here one after the other, on a cluster with a run for each. Raises
        ``AnswersPending`` in the end where stages wait for batches."""
        if work and self.runs_on != LOCAL:
            self._run_on_cluster(self._definitions().resolve_job_def(name), work)
        else:
            for partition, (only, settings) in work.items():
                if partition not in self._read:  # else in a round before
                    self.run(SAMPLES, partition=partition)
                    self._read.add(partition)
                self.run(name, partition=partition, settings=settings, only=only)
        if self._pending:
            places = dict.fromkeys(pending.where for pending in self._pending)
            raise AnswersPending(sum(pending.n_rows for pending in self._pending), "; ".join(places))

    def run_on_cluster(self, name: str, *, settings: Mapping[str, Any] | None = None) -> None:
        self._run_on_cluster(self._definitions().resolve_job_def(name), {"": ShardRun(settings=settings)})

    def _run_on_cluster(self, job: dg.JobDefinition, work: Mapping[str, ShardRun]) -> None:
        """Queue a run for each shard (of a job without partitions one, "") and wait for all; Ctrl-C cancels them, a
        killed command leaves them. Raises ``MaterializationFailed`` with the message of each that failed."""
        runs, failures = QueuedRuns(self._instance, job, self.runs_on), list[str]()
        queueing = f"{job.name} … queueing {len(work):,} runs"
        with daemon(self._instance) as watch, self.console.status(queueing) as status:
            try:
                n_waiting = len(work)
                while n_waiting or runs.n_open():
                    # the first shards are worked on while the others are queued
                    n_waiting = _patiently(status, partial(_submit, runs, work)) if n_waiting else 0
                    watch.ensure()
                    _patiently(status, lambda: self._note_ended(runs, failures))
                    n_ended = len(work) - runs.n_open() - n_waiting
                    ended = f"{n_ended:,} of {len(work):,} ended, {_patiently(status, runs.n_running):,} running"
                    waiting = f", {n_waiting:,} behind other runs of the same" if n_waiting else ""
                    status.update(f"{job.name} on {self.runs_on} … {ended}{waiting}")
                    time.sleep(_SECONDS)
            except KeyboardInterrupt:
                runs.cancel()
                raise
        if failures:
            raise MaterializationFailed("\n".join(failures))

    def _note_ended(self, runs: QueuedRuns, failures: list[str]) -> None:
        """Print the shards that have ended since the last call; add reasons of failures, and what stages wait for."""
        for partition, run in runs.ended():
            _print(self.console, self._instance, partition, run)
            checks = _events(self._instance, run, {dg.DagsterEventType.ASSET_CHECK_EVALUATION})
            self._pending += pending_answers(event.asset_check_evaluation_data for event in checks)
            if not run.is_success:  # the first error of each step; of a lost run, what was noticed
                events = _events(self._instance, run, _ENDINGS)
                reasons = _step_failures(events) or [event.message or "failed" for event in events]
                failures += [f"{partition}: {reason}" if partition else reason for reason in reasons]

    def unfinished(self, name: str, partitions: Sequence[str], keys: Sequence[dg.AssetKey]) -> list[str]:
        """The shards on which a stage of ``keys`` has work to do. Prints how many others there are, as ``name``."""
        looks = UnfinishedShards(self.workspace, self._instance, policies(), keys)
        unfinished = list[str]()
        with progress_bar("looking for unfinished shards", self.console) as progress:
            for n, (partition, has_work) in enumerate(looks.among(partitions), 1):
                progress(n, len(partitions))
                unfinished += [partition] if has_work else []
        if n_finished := len(partitions) - len(unfinished):
            line = f"{name}: {n_finished:,} of {len(partitions):,} shards are finished"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        return unfinished

    def ship(self, quotas: Mapping[str, int]) -> None:
        """Run the job of the SFT datasets, unless they are finished. Raises ``MaterializationFailed``."""
        if are_shipped(self.workspace, self._instance, quotas):
            self.console.print(f"{DATASETS}: finished", highlight=False)
        else:
            self.run(DATASETS, settings={"sft_dataset": {"quotas": quotas}} if quotas else None)

    def n_rows(self, asset: tuple[str, ...], partition: str) -> int:
        """Rows of a table; 0 where there is none."""
        return self.workspace.tables.n_rows(TableKey(asset, partition))


@contextmanager
def open_jobs(
    console: Console,
    workspace: Workspace,
    used: Mapping[Use, Sequence[str]] | None = None,
    runs_on: str = LOCAL,
    *,
    on_first_trajectory: Callable[[], object] | None = None,
    shows_first_trajectory: bool = True,
) -> Iterator[Jobs]:
    """``used``: shards that the jobs run on, whatever their source is for. Raises ``UserError``."""
    first = FirstTrajectory(console, workspace, on_first_trajectory)
    dagster_home.prepare_dagster_home(workspace)
    with dagster_home.open_instance() as instance:
        dagster_home.keep_from_ctrl_c(instance)
        dagster_home.keep_files_open(instance)
        if runs_on != LOCAL:
            check_placement(instance, runs_on)
        dagster_home.close_abandoned_runs(instance)
        update_partitions(workspace, instance, used)
        yield Jobs(console, workspace, instance, runs_on, first.look if shows_first_trajectory else lambda _: None)


def materialize(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    console: Console,
    *,
    partition: str | None = None,
    settings: Mapping[str, Any] | None = None,
    only: Sequence[dg.AssetKey] | None = None,
    on_asset: OnAsset,
) -> list[AnswersPending]:
    """Run ``job`` and print a line per asset; returns what its stages wait for. ``settings``: config of the assets by
    op name; ``only``: a subset. Raises ``MaterializationFailed``, and ``KeyboardInterrupt`` if Ctrl-C ended the run."""
    title, run_id = f"{job.name} {partition}" if partition else job.name, str(uuid4())
    lines = RunLines(console, title, len(job.nodes) if only is None else len(only), on_asset)
    instance.add_event_listener(run_id, lines.record)
    with lines.live():
        config, tags = {**_QUIET, **op_config(settings)}, worker_tags(run_id)
        run = job.execute_in_process(
            config, instance, partition, raise_on_error=False, run_id=run_id, tags=tags, asset_selection=only
        )
    if any(event.is_step_failure and is_interrupt(event.step_failure_data) for event in run.all_events):
        raise KeyboardInterrupt
    if not run.success:
        raise MaterializationFailed("\n".join(failures_here(run)))
    return pending_answers(run.get_asset_check_evaluations())


def _submit(runs: QueuedRuns, work: Mapping[str, ShardRun]) -> int:
    """Queue what can be, shards with equal runs together; returns the number of shards that have to wait."""
    equal = by_key((repr(run), partition) for partition, run in work.items())
    groups = ((partitions, work[partitions[0]]) for partitions in equal.values())
    return sum(runs.submit(partitions, only, op_config(settings)) for partitions, (only, settings) in groups)


def _patiently(status: Status, ask: Callable[[], _T]) -> _T:
    """Retry while Dagster's database is unavailable. Raises ``UserError``."""
    deadline = time.monotonic() + _AWAY_SECONDS
    while True:
        try:
            return ask()
        except dagster_home.database_errors() as error:
            if time.monotonic() > deadline:
                mend = "start its server, then run this again; runs on the cluster go on"
                raise UserError(f"Dagster's history does not answer since {_AWAY_SECONDS:.0f} s: {mend}") from error
        status.update("waiting for Dagster's history, which does not answer …")
        time.sleep(_SECONDS)


def _events(instance: dg.DagsterInstance, run: dg.DagsterRun, kinds: set[dg.DagsterEventType]) -> list[dg.DagsterEvent]:
    return [log.dagster_event for log in instance.all_logs(run.run_id, of_type=kinds) if log.dagster_event]


def _print(console: Console, instance: dg.DagsterInstance, partition: str, run: dg.DagsterRun) -> None:
    stats = instance.get_run_stats(run.run_id)
    seconds = f"{stats.end_time - stats.start_time:.1f} s" if stats.start_time and stats.end_time else "not started"
    host, repeated = host_of(run), int(run.tags.get("dagster/retry_number", 0))
    where = f" on {host}" if host else ""
    again = f", repeated {repeated} time{'s' if repeated > 1 else ''}" if repeated else ""
    events = _events(instance, run, {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.STEP_SUCCESS})
    console.print(f"[bold]{f'{run.job_name} {partition}'.strip()}[/bold]  {seconds}{where}{again}")
    ends = (event for event in events if event.is_step_success)
    durations = {event.step_key: event.step_success_data.duration_ms / 1000 for event in ends}
    for event in filter(lambda event: event.is_step_materialization, events):
        line = materialization_line(event.step_materialization_data.materialization, durations.get(event.step_key))
        console.print(line, highlight=False, soft_wrap=True)


def failures_here(run: dg.ExecuteInProcessResult) -> list[str]:
    """Why a run of this process failed: the checks and the first error of each step."""
    steps = _step_failures(run.all_events)
    checks = [
        f"check {check.check_name} of {check.asset_key.to_user_string()} failed: "
        + ", ".join(f"{name} {value.value}" for name, value in check.metadata.items())
        for check in run.get_asset_check_evaluations()
        if not check.passed and check.severity == dg.AssetCheckSeverity.ERROR
    ]
    return checks + steps or ["the run failed; see it in the UI"]


def _step_failures(events: Sequence[dg.DagsterEvent]) -> list[str]:
    return [f"{event.step_key}: {root_cause(event.step_failure_data)}" for event in events if event.is_step_failure]


def root_cause(failure: Any) -> str:
    """The message of a failed step: of the error that was raised for users, else of the first one, with its class."""
    errors, for_users = list(_causes(failure.error)), {kind.__name__ for kind in _subclasses(UserError, SandboxError)}
    if not errors:
        return "failed"
    error = next((error for error in errors if error.cls_name in for_users), errors[-1])
    text: str = error.message.strip()
    return text.partition(": ")[2] if error.cls_name in for_users else text


def is_interrupt(failure: Any) -> bool:
    """True if a step failed by Ctrl-C, which Dagster makes a failure of it."""
    names = {dg.DagsterExecutionInterruptedError.__name__, KeyboardInterrupt.__name__}
    return any(error.cls_name in names for error in _causes(failure.error))


def _causes(error: Any) -> Iterator[Any]:
    while error is not None:
        yield error
        error = error.cause


def _subclasses(*kinds: type[Exception]) -> Iterator[type[Exception]]:
    for kind in kinds:
        yield from (kind, *_subclasses(*kind.__subclasses__()))
