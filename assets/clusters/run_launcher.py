"""Where runs execute: on this machine, on a Ray cluster or on a Slurm cluster.

    darkroom/runs_on: ray://head:10001        a run's tag: by `darkroom materialize --on`, in the launchpad, or from
                                              DARKROOM_RUN_ON when the run is launched; a repeated run inherits it

One run is one shard and one worker. Kubernetes has a launcher of its own in ``dagster.yaml`` (docs/scale.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import dagster as dg
from dagster._config.config_schema import UserConfigSchema
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext
from dagster._core.launcher.base import RunLauncher
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from darkroom.assets.clusters.worker import LocalRunLauncher
from darkroom.pipelines.storage.settings import EnvironmentSettings, setting
from darkroom.sandbox.errors import UserError

if TYPE_CHECKING:
    from dagster._core.instance import DagsterInstance

HERE, SLURM, KUBERNETES = "here", "slurm", "kubernetes"
TAG = "darkroom/runs_on"
PREFIX = "DARKROOM_RUN_"
Kind = Literal["here", "ray", "slurm", "kubernetes"]
_FORWARDED = "DARKROOM_"
_FOLDERS = ("DARKROOM_HOME", "DARKROOM_LOCAL", "DARKROOM_IMAGES", "DARKROOM_ENVIRONMENTS")
"""Variables that may name a folder by a relative path."""
_ALSO_FORWARDED = ("DAGSTER_POSTGRES_URL", "HF_HUB_OFFLINE")


class PlaceError(UserError):
    """A place where runs cannot execute: what is wrong, and the mend."""


class PlaceAway(PlaceError):
    """A place that does not answer: it may later."""


class RunSettings(EnvironmentSettings):
    """Where runs of the UI and of the queue execute, and what each takes there (``DARKROOM_RUN_…``)."""

    on: str = setting(
        "ON",
        HERE,
        description="`here`; `ray://HOST:PORT`, `http://HOST:8265` (its dashboard) or `auto` (the cluster that this "
        "machine is a node of) for Ray; `slurm`; `kubernetes`. `--on` and the tag `darkroom/runs_on` override it.",
    )
    n_cpus: int = setting("CPUS", 1, ge=1, description="CPUs that a run takes of a Ray or Slurm cluster.")
    memory_mb: int = setting("MEMORY_MB", 0, ge=0, description="Memory that a run takes of it; 0: not counted.")
    options: str = setting("OPTIONS", "", description="More options of sbatch, as in `--partition=cpu --time=8:00:00`.")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Raises ``PlaceError``, naming the variable that is wrong."""
        return cls.read(environment, PREFIX, error=PlaceError)


def kind_of(place: str) -> Kind:
    """``ray`` for an address of a Ray cluster. Raises ``PlaceError`` for what is no place."""
    if place == "auto" or place.startswith(("ray://", "http://", "https://")):
        return "ray"
    if place in (HERE, SLURM, KUBERNETES):
        return place  # type: ignore[return-value]
    raise PlaceError(
        f"{place!r} is no place for runs: `ray://HOST:PORT`, `http://HOST:8265`, `auto` (Ray), `slurm`, `kubernetes` "
        "or `here`"
    )


def forwarded(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a run on another machine gets of this one's environment: Darkroom's settings, the databases, and the keys
    that the settings name."""
    settings = {
        name: value
        for name, value in environment.items()
        if name.startswith(_FORWARDED) and not name.startswith(PREFIX)
    }
    keys = {value for name, value in settings.items() if name.endswith("_KEY")} | {"OPENAI_API_KEY"}
    settings |= {name: environment[name] for name in (*_ALSO_FORWARDED, *keys) if environment.get(name)}
    settings["DARKROOM_HOME"] = settings.get("DARKROOM_HOME") or "data"
    # a worker's own folder is another
    folders = {name: settings[name] for name in _FOLDERS if settings.get(name) and "://" not in settings[name]}
    return settings | {name: os.path.abspath(os.path.expanduser(folder)) for name, folder in folders.items()}


class PlacedRunLauncher(RunLauncher, ConfigurableClass):
    """Launches each run where its tag or the environment says, and asks there how it is."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        self._launchers: dict[str, RunLauncher] = {}
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """What ``dagster.yaml`` says."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        """Nothing: the environment configures it."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        return cls(inst_data=inst_data)

    def check(self, place: str) -> None:
        """Raises ``PlaceError`` or ``LaunchError`` where a run cannot get to."""
        self._at(place)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Records the place first, so that the run is looked for where it was launched.

        Raises ``PlaceError``, and ``DagsterUserCodeUnreachableError`` where the place is away: the one error after
        which the queue takes a run back (``max_user_code_failure_retries`` in ``dagster.yaml``).
        """
        run = context.dagster_run
        place = run.tags.get(TAG) or RunSettings.from_environment().on
        if place != HERE:
            check_databases(self._instance)
        self._instance.add_run_tags(run.run_id, {TAG: place})
        try:
            self._at(place).launch_run(
                context if place == HERE else context._replace(dagster_run=_with_interpreter(run))
            )
        except PlaceAway as error:
            raise DagsterUserCodeUnreachableError(str(error)) from error

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        return run is not None and self._of(run).terminate(run_id)

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

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
        return self._at(run.tags.get(TAG, HERE))

    def _at(self, place: str) -> RunLauncher:
        if place not in self._launchers:
            launcher = _launcher(place, RunSettings.from_environment())
            launcher.register_instance(self._instance)
            self._launchers[place] = launcher
        return self._launchers[place]


def _launcher(place: str, settings: RunSettings) -> RunLauncher:
    kind = kind_of(place)
    if kind == "here":
        return LocalRunLauncher()
    if kind == "slurm":
        from darkroom.assets.clusters.slurm import slurm_launcher

        return slurm_launcher(settings)
    if kind == "ray":
        try:
            from darkroom.assets.clusters.ray import ray_launcher
        except ImportError as error:
            raise PlaceError("runs on Ray need its packages: pip install 'darkroom-toolkit[ray]'") from error
        return ray_launcher(place, settings)
    raise PlaceError("runs on Kubernetes need its launcher in dagster.yaml: copy assets/kubernetes/dagster.yaml there")


def _with_interpreter(run: dg.DagsterRun) -> dg.DagsterRun:
    """With the code location's Python as what starts it: `dagster` alone would be looked for in the worker's PATH."""
    origin = run.job_code_origin
    if origin is None:
        return run
    repository = origin.repository_origin
    entry_point = [repository.executable_path, "-P", "-m", "dagster"]
    return run._replace(job_code_origin=origin._replace(repository_origin=repository._replace(entry_point=entry_point)))


def check_databases(instance: DagsterInstance) -> None:
    """Raises ``PlaceError`` where Dagster's history or the ledger is in SQLite: several machines would corrupt it."""
    if any("sqlite" in kind.__module__ for kind in type(instance.event_log_storage).__mro__):
        raise PlaceError(
            "Dagster's history is in SQLite, which is for one machine: copy assets/dagster_team.yaml to "
            "$DAGSTER_HOME/dagster.yaml and set DAGSTER_POSTGRES_URL"
        )
    ledger = os.environ.get("DARKROOM_LEDGER", "")
    if not ledger or ledger.startswith("sqlite"):
        raise PlaceError(
            "the ledger is in SQLite, which is for one machine: set DARKROOM_LEDGER=postgresql+psycopg://…"
        )
