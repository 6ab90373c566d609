"""The launcher of all runs, named in ``dagster.yaml``: each run goes where its tag or the environment says. Kubernetes
has a launcher of its own there (docs/scale.md)."""

from collections.abc import Mapping
from typing import Any, Self

import dagster as dg
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from darkroom.assets.clusters.placement import (
    KUBERNETES,
    LOCAL,
    RUNS_ON_TAG,
    ClusterUnavailable,
    RunSettings,
    check_databases,
    kind_of,
)
from darkroom.assets.clusters.worker import CheckRunHealthResult, LaunchRunContext, LocalRunLauncher, RunLauncher
from darkroom.sandbox.errors import UserError, raised_as


class PlacedRunLauncher(RunLauncher, ConfigurableClass):
    """Launch each run where it is placed, and ask there how it is."""

    supports_check_run_worker_health = True

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        self._launchers: dict[str, RunLauncher] = {}
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing: the environment configures it."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        return cls(inst_data=inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Record the placement first, so that the run is looked for where it was launched. Raises ``UserError``,
        and ``DagsterUserCodeUnreachableError`` while the cluster is unavailable: the one error after which the queue
        takes a run back (``max_user_code_failure_retries`` in ``dagster.yaml``)."""
        run = context.dagster_run
        if (runs_on := run.tags.get(RUNS_ON_TAG) or RunSettings.from_environment().on) != LOCAL:
            check_databases(self._instance)
            if origin := run.job_code_origin:
                # by its code location's Python: `dagster` alone would be looked for in the worker's PATH
                repository = origin.repository_origin
                entry_point = [repository.executable_path, "-P", "-m", "dagster"]
                origin = origin._replace(repository_origin=repository._replace(entry_point=entry_point))
                context = context._replace(dagster_run=run._replace(job_code_origin=origin))
        self._instance.add_run_tags(run.run_id, {RUNS_ON_TAG: runs_on})
        with raised_as(lambda error: DagsterUserCodeUnreachableError(str(error)), ClusterUnavailable):
            self.at(runs_on).launch_run(context)

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        return run is not None and self._of(run).terminate(run_id)

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        return self._of(run).check_run_worker_health(run)

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        return self._of(run).get_run_worker_debug_info(run, include_container_logs)

    def dispose(self) -> None:
        for launcher in self._launchers.values():
            launcher.dispose()

    def join(self, timeout: int = 30) -> None:
        for launcher in self._launchers.values():
            launcher.join(timeout)

    def _of(self, run: dg.DagsterRun) -> RunLauncher:
        return self.at(run.tags.get(RUNS_ON_TAG, LOCAL))

    def at(self, runs_on: str) -> RunLauncher:
        """The launcher for ``runs_on``. Raises ``UserError`` if a run cannot get there."""
        if runs_on not in self._launchers:
            launcher = _launcher(runs_on, RunSettings.from_environment())
            launcher.register_instance(self._instance)
            self._launchers[runs_on] = launcher
        return self._launchers[runs_on]


def _launcher(runs_on: str, settings: RunSettings) -> RunLauncher:
    if (kind := kind_of(runs_on)) == "here":
        return LocalRunLauncher()
    if kind == "slurm":
        from darkroom.assets.clusters.slurm import SlurmRunLauncher, queued_jobs

        queued_jobs()  # raises where no Slurm answers
        return SlurmRunLauncher(settings)
    if kind == "ray":
        try:
            from darkroom.assets.clusters.ray import ray_launcher
        except ImportError as error:
            raise UserError("runs on Ray need its packages: pip install 'darkroom-toolkit[ray]'") from error
        return ray_launcher(runs_on, settings)
    raise UserError("runs on Kubernetes need its launcher in dagster.yaml: copy assets/kubernetes/dagster.yaml")


def check_placement(instance: dg.DagsterInstance, runs_on: str) -> None:
    """Raises ``UserError`` if runs of this instance cannot be placed there."""
    kind, launcher = kind_of(runs_on), instance.run_launcher
    check_databases(instance)
    if kind == KUBERNETES:
        if type(launcher).__name__ != "K8sRunLauncher":
            raise UserError("dagster.yaml names another launcher: copy assets/kubernetes/dagster.yaml there")
        return
    if not isinstance(launcher, PlacedRunLauncher):
        entry = f"run_launcher: {{module: {__name__}, class: PlacedRunLauncher}}"
        raise UserError(f"dagster.yaml names another launcher: put `{entry}` there")
    launcher.at(runs_on)
