"""The jobs of one command, on the Dagster instance that the UI shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
from rich.console import Console

from darkroom.assets.builds.unfinished_shards import Finished
from darkroom.assets.builds.wait_for_runs import materialize_elsewhere
from darkroom.assets.clusters.queued_runs import check_place
from darkroom.assets.clusters.run_launcher import HERE
from darkroom.assets.dagster_home.history import open_instance
from darkroom.assets.dagster_home.instance import close_abandoned_runs, materialize, prepare_dagster_home
from darkroom.assets.dagster_home.step_output import keep_from_ctrl_c
from darkroom.assets.definitions import definitions
from darkroom.assets.graph.partitions import update_partitions
from darkroom.assets.terminal.first_trajectory import FirstTrajectory
from darkroom.assets.terminal.progress_bar import progress_bar
from darkroom.assets.terminal.run_lines import OnAsset
from darkroom.pipelines.sources.source_config import Use
from darkroom.pipelines.storage.tables import TableKey
from darkroom.pipelines.storage.workspace import Workspace


class Jobs:
    """Runs jobs by name: here, or on shards at ``place``."""

    def __init__(
        self,
        console: Console,
        workspace: Workspace,
        instance: dg.DagsterInstance,
        place: str,
        on_asset: OnAsset,
    ) -> None:
        self.console, self.workspace, self._instance, self.place = console, workspace, instance, place
        self._definitions, self._on_asset = definitions(), on_asset

    def run(
        self,
        name: str,
        *,
        partition: str | None = None,
        settings: Mapping[str, Any] | None = None,
        only: Sequence[dg.AssetKey] | None = None,
    ) -> None:
        """Here. Raises ``MaterializationFailed``."""
        job = self._definitions.resolve_job_def(name)
        materialize(
            job,
            self._instance,
            self.console,
            partition=partition,
            settings=settings,
            only=only,
            on_asset=self._on_asset,
        )

    def run_elsewhere(self, name: str, partitions: Sequence[str], *, only: Sequence[dg.AssetKey] | None = None) -> None:
        """One run for each shard on which something is left to do, at ``place``."""
        job = self._definitions.resolve_job_def(name)
        left = self.unfinished(name, partitions, only or sorted(job.asset_layer.selected_asset_keys))
        if left:
            materialize_elsewhere(job, self._instance, self.console, place=self.place, partitions=left, only=only)

    def unfinished(self, name: str, partitions: Sequence[str], keys: Sequence[dg.AssetKey]) -> list[str]:
        """The shards on which one of the stages ``keys`` has work to do.

        Prints how many the others are, as those of the job ``name``.
        """
        finished = Finished(self.workspace, self._instance, dict(self._definitions.resources or {}), keys)
        left = list[str]()
        with progress_bar("looking for unfinished shards", self.console) as progress:
            for n, (partition, has_work) in enumerate(finished.unfinished(partitions), 1):
                progress(n, len(partitions))
                left += [partition] if has_work else []
        if n_finished := len(partitions) - len(left):
            words = f"{name}: {n_finished:,} of {len(partitions):,} shards are finished"
            self.console.print(words, markup=False, highlight=False, soft_wrap=True)
        return left

    def n_rows(self, asset: tuple[str, ...], partition: str) -> int:
        """Rows of a table; 0 where there is none."""
        return self.workspace.tables.n_rows(TableKey(asset, partition))


@contextmanager
def open_jobs(
    console: Console,
    workspace: Workspace,
    used: Mapping[Use, Sequence[str]] | None = None,
    place: str = HERE,
    *,
    on_first_trajectory: Callable[[], None] = lambda: None,
    shows_first_trajectory: bool = True,
) -> Iterator[Jobs]:
    """``used``: shards that the jobs run on, whatever their source is for. Raises ``PlaceError`` and
    ``InstanceUnavailable``."""
    first = FirstTrajectory(console, workspace, on_first_trajectory)
    prepare_dagster_home(workspace)
    with open_instance() as instance:
        keep_from_ctrl_c(instance)
        if place != HERE:
            check_place(instance, place)
        close_abandoned_runs(instance)
        update_partitions(workspace, instance, used)
        yield Jobs(console, workspace, instance, place, first.look if shows_first_trajectory else lambda _: None)
