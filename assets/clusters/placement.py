"""Placement of runs: on this machine, on a Ray cluster, on a Slurm cluster or on Kubernetes.

    darkroom/runs_on: ray://head:10001        a run's tag: by `darkroom materialize --on`, in the launchpad, or from
                                              DARKROOM_RUN_ON when the run is launched; a repeated run inherits it
    darkroom/gpus: 8                          a run's tag; without it DARKROOM_RUN_GPUS counts for runs that train

One run is one shard or one training, and one worker.
"""

import json
import os
from collections.abc import Mapping
from typing import Literal, Self

import dagster as dg

from darkroom.pipelines.storage.settings import EnvironmentSettings, setting
from darkroom.sandbox.errors import UserError

LOCAL, SLURM, KUBERNETES = "here", "slurm", "kubernetes"
RUNS_ON_TAG = "darkroom/runs_on"
GPUS_TAG = "darkroom/gpus"
PARTITION_TAG = "dagster/partition"
WILL_RETRY_TAG = "dagster/will_retry"
_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
UNFINISHED = [status for status in dg.DagsterRunStatus if status not in _ENDED]
TRAIN = "train"
"""The job that trains."""
TRAINING_ASSETS = frozenset({"sft_checkpoint", "grpo_checkpoint", "evaluation"})
PREFIX = "DARKROOM_RUN_"
Kind = Literal["here", "ray", "slurm", "kubernetes"]
_FORMER_GPUS = "DARKROOM_LAUNCH_GPUS"
_FORWARDED = "DARKROOM_"
_FOLDERS = ("DARKROOM_HOME", "DARKROOM_LOCAL", "DARKROOM_IMAGES", "DARKROOM_ENVIRONMENTS")
"""Variables that may name a folder by a relative path."""
_ALSO_FORWARDED = ("DAGSTER_POSTGRES_URL", "HF_HUB_OFFLINE")


class ClusterUnavailable(UserError):
    """A cluster that does not answer: it may later."""


class RunSettings(EnvironmentSettings):
    """The placement of runs of the UI and of the queue, and what each takes there (``DARKROOM_RUN_…``)."""

    on: str = setting("ON", LOCAL)
    """`here`; `ray://HOST:PORT`, `http://HOST:8265` (its dashboard) or `auto` (the cluster that this machine is a node
    of) for Ray; `slurm`; `kubernetes`. `--on` and the tag `darkroom/runs_on` override it."""
    n_cpus: int = setting("CPUS", 1, ge=1)
    """CPUs that a run takes of a Ray or Slurm cluster."""
    n_gpus: int = setting("GPUS", 0, ge=0)
    """GPUs that a run takes of it if it trains; the tag `darkroom/gpus` overrides it."""
    memory_mb: int = setting("MEMORY_MB", 0, ge=0)
    """Memory that a run takes of it; 0: not counted."""
    options: str = setting("OPTIONS", "")
    """More options of sbatch, as in `--partition=cpu --time=8:00:00`."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Raises ``UserError``, naming the variable that is wrong."""
        former = {f"{PREFIX}GPUS": environment.get(_FORMER_GPUS, "")}
        return cls.read({**former, **environment}, PREFIX)

    def training_tags(self) -> dict[str, str]:
        """Tags of the job that trains: dagster-k8s takes a pod's resources from one."""
        limits = {"container_config": {"resources": {"limits": {"nvidia.com/gpu": self.n_gpus}}}}
        return {"dagster-k8s/config": json.dumps(limits)} if self.n_gpus else {}

    def gpus_of(self, run: dg.DagsterRun) -> int:
        """GPUs that a run takes. Raises ``UserError`` if its tag is no number."""
        if (tag := run.tags.get(GPUS_TAG, "")) and not tag.isdecimal():
            raise UserError(f"the tag {GPUS_TAG} is {tag!r}; set it to a number")
        if tag:
            return int(tag)
        trains = run.job_name == TRAIN or any(key.path[-1] in TRAINING_ASSETS for key in run.asset_selection or ())
        return self.n_gpus if trains else 0


def kind_of(runs_on: str) -> Kind:
    """``ray`` for an address of a Ray cluster. Raises ``UserError`` for anything else that names no cluster."""
    if runs_on == "auto" or runs_on.startswith(("ray://", "http://", "https://")):
        return "ray"
    if runs_on in (LOCAL, SLURM, KUBERNETES):
        return runs_on  # type: ignore[return-value]
    places = "`ray://HOST:PORT`, `http://HOST:8265`, `auto` (Ray), `slurm`, `kubernetes` or `here`"
    raise UserError(f"{runs_on!r} is no place for runs: {places}")


def forwarded(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a run on another machine: Darkroom's settings, the databases, the keys that settings name."""
    names = (name for name in environment if name.startswith(_FORWARDED) and not name.startswith(PREFIX))
    settings = {name: environment[name] for name in names}
    keys = {value for name, value in settings.items() if name.endswith("_KEY")} | {"OPENAI_API_KEY"}
    settings |= {name: environment[name] for name in (*_ALSO_FORWARDED, *keys) if environment.get(name)}
    settings["DARKROOM_HOME"] = settings.get("DARKROOM_HOME") or "data"
    # a worker's own folder is another
    folders = {name: settings[name] for name in _FOLDERS if settings.get(name) and "://" not in settings[name]}
    return settings | {name: os.path.abspath(os.path.expanduser(folder)) for name, folder in folders.items()}


def check_databases(instance: dg.DagsterInstance) -> None:
    """Raises ``UserError`` if Dagster's history or the ledger is in SQLite: several machines would corrupt it."""
    if any("sqlite" in kind.__module__ for kind in type(instance.event_log_storage).__mro__):
        mend = "copy assets/dagster_team.yaml to $DAGSTER_HOME/dagster.yaml and set DAGSTER_POSTGRES_URL"
        raise UserError(f"Dagster's history is in SQLite, which is for one machine: {mend}")
    if not (ledger := os.environ.get("DARKROOM_LEDGER", "")) or ledger.startswith("sqlite"):
        raise UserError("the ledger is in SQLite, for one machine: set DARKROOM_LEDGER=postgresql+psycopg://…")
