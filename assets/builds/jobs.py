"""The jobs of one command, on the Dagster instance that the UI shows: a line per asset, wherever they run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dagster as dg
from rich.console import Console

from darkroom.assets.builds.failures import MaterializationFailed, failures_here, is_interrupt
from darkroom.assets.builds.unfinished_shards import UnfinishedShards
from darkroom.assets.builds.wait_for_runs import materialize_on_cluster
from darkroom.assets.clusters.placement import LOCAL
from darkroom.assets.clusters.run_launcher import check_placement
from darkroom.assets.clusters.worker import worker_tags
from darkroom.assets.dagster_home.history import open_instance
from darkroom.assets.dagster_home.instance import close_abandoned_runs, keep_from_ctrl_c, prepare_dagster_home
from darkroom.assets.definitions import definitions
from darkroom.assets.graph.partitions import update_partitions
from darkroom.assets.terminal.progress import progress_bar
from darkroom.assets.terminal.run_lines import FirstTrajectory, OnAsset, RunLines
from darkroom.pipelines.sources.source_config import Use
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Jobs:
    """Run jobs by name: here, or on the cluster ``runs_on``."""

    def __init__(
        self,
        console: Console,
        workspace: Workspace,
        instance: dg.DagsterInstance,
        runs_on: str,
        on_asset: OnAsset,
    ) -> None:
        self.console, self.workspace, self._instance, self.runs_on = console, workspace, instance, runs_on
        self._definitions, self._on_asset = definitions(), on_asset

    def run(
        self,
        name: str,
        *,
        partition: str | None = None,
        settings: Mapping[str, Any] | None = None,
        only: Sequence[dg.AssetKey] | None = None,
    ) -> None:
        """Run a job here. Raises ``MaterializationFailed``."""
        materialize(
            self._definitions.resolve_job_def(name),
            self._instance,
            self.console,
            partition=partition,
            settings=settings,
            only=only,
            on_asset=self._on_asset,
        )

    def run_shards_on_cluster(
        self, name: str, partitions: Sequence[str], *, only: Sequence[dg.AssetKey] | None = None
    ) -> None:
        """Run a job on the cluster, with a run for each shard on which something is left to do."""
        job = self._definitions.resolve_job_def(name)
        if shards := self.unfinished(name, partitions, only or sorted(job.asset_layer.selected_asset_keys)):
            materialize_on_cluster(job, self._instance, self.console, self.runs_on, shards, only=only)

    def run_on_cluster(self, name: str, *, settings: Mapping[str, Any] | None = None) -> None:
        """Run a job that has no shards on the cluster."""
        job, config = self._definitions.resolve_job_def(name), _config(settings)
        materialize_on_cluster(job, self._instance, self.console, self.runs_on, [""], run_config=config)

    def unfinished(self, name: str, partitions: Sequence[str], keys: Sequence[dg.AssetKey]) -> list[str]:
        """The shards on which one of the stages ``keys`` has work to do.

        Prints how many the others are, as those of the job ``name``.
        """
        looks = UnfinishedShards(self.workspace, self._instance, dict(self._definitions.resources or {}), keys)
        unfinished = list[str]()
        with progress_bar("looking for unfinished shards", self.console) as progress:
            for n, (partition, has_work) in enumerate(looks.among(partitions), 1):
                progress(n, len(partitions))
                unfinished += [partition] if has_work else []
        if n_finished := len(partitions) - len(unfinished):
            line = f"{name}: {n_finished:,} of {len(partitions):,} shards are finished"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        return unfinished

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
    on_first_trajectory: Callable[[], None] = lambda: None,
    shows_first_trajectory: bool = True,
) -> Iterator[Jobs]:
    """``used``: shards that the jobs run on, whatever their source is for. Raises ``PlacementError`` and
    ``InstanceUnavailable``."""
    first = FirstTrajectory(console, workspace, on_first_trajectory)
    prepare_dagster_home(workspace)
    with open_instance() as instance:
        keep_from_ctrl_c(instance)
        if runs_on != LOCAL:
            check_placement(instance, runs_on)
        close_abandoned_runs(instance)
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
) -> None:
    """Run ``job`` and print a line per asset. ``settings``: config of the assets by op name; ``only``: a subset.

    Raises ``MaterializationFailed``, and ``KeyboardInterrupt`` if Ctrl-C ended the run.
    """
    title, run_id = f"{job.name} {partition}" if partition else job.name, str(uuid4())
    lines = RunLines(console, title, len(job.nodes) if only is None else len(only), on_asset)
    instance.add_event_listener(run_id, lines.record)
    with lines.live():
        run = job.execute_in_process(
            instance=instance,
            partition_key=partition,
            run_config={**_QUIET, **_config(settings)},
            run_id=run_id,
            tags=worker_tags(run_id),
            asset_selection=only,
            raise_on_error=False,
        )
    if any(event.is_step_failure and is_interrupt(event.step_failure_data) for event in run.all_events):
        raise KeyboardInterrupt
    if not run.success:
        raise MaterializationFailed("\n".join(failures_here(run)))


def _config(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"ops": {step: {"config": config} for step, config in settings.items()}} if settings else {}
