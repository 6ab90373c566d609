"""The RL side of a source: every stage on its shards, then the dataset of all that there is."""

import time
from collections.abc import Mapping
from typing import Any

import dagster as dg
from rich.console import Console

from assets.definitions import definitions
from assets.home import close_abandoned_runs, prepare_dagster_home
from assets.jobs import RL, RL_DATASET
from assets.materialize import MaterializationFailed, materialize
from assets.rl_summary import print_rl_summary
from pipelines.sources import Catalog, SourceFault
from pipelines.workspace import Workspace


def materialize_rl(
    console: Console,
    name: str,
    *,
    n_rows: int | None = None,
    quotas: Mapping[str, int] | None = None,
) -> None:
    """Every RL stage on every shard of one source, then the dataset. What is finished is not done again.

    Prints what there is, also when a job failed. Raises ``SourceFault`` before any work, ``MaterializationFailed`` with
    the asset's words.
    """
    started = time.monotonic()
    with Workspace.from_environment() as workspace:
        shards = Catalog(workspace.sources).partitions()
        partitions = [partition for partition, (source, _) in shards.items() if source == name]
        if not partitions:
            known = sorted({source for source, _ in shards.values()})
            raise SourceFault(f"there is no source {name!r}; there are {known}")
        prepare_dagster_home(workspace)
        mix: dict[str, Any] = {"quotas": dict(quotas or {}), "n_rows": n_rows}
        try:
            with dg.DagsterInstance.get() as instance:
                close_abandoned_runs(instance)
                defs = definitions()
                for partition in partitions:
                    materialize(defs.resolve_job_def(RL), instance, console, partition=partition)
                materialize(defs.resolve_job_def(RL_DATASET), instance, console, settings={"rl_dataset": mix})
        except MaterializationFailed:
            print_rl_summary(console, workspace, list(shards), None)
            raise
        print_rl_summary(console, workspace, list(shards), time.monotonic() - started)
