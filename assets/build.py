"""The whole way: a source through every family to shipped datasets and a trained checkpoint."""

import asyncio
import time
from collections.abc import Sequence

import dagster as dg
from rich.console import Console

from assets.definitions import definitions
from assets.home import close_abandoned_runs, prepare_dagster_home
from assets.jobs import DATASETS, SFT, TRAIN
from assets.materialize import MaterializationFailed, materialize
from assets.resources import PolicyResource
from assets.summary import print_summary
from pipelines.publish import ASSET
from pipelines.recipes import Recipe, load_recipes
from pipelines.sources import Catalog, SourceFault
from pipelines.tables import TableKey
from pipelines.workspace import Workspace


def materialize_source(console: Console, name: str, *, train: bool) -> None:
    """Materialises every family on every shard of one source, ships the datasets, trains on them if asked.

    What is finished is not done again. Prints what there is, also when a job failed. Raises ``SourceFault``,
    ``PolicyUnavailable`` before any work, ``MaterializationFailed`` with the asset's words.
    """
    started = time.monotonic()
    with Workspace.from_environment() as workspace:
        recipes = list(load_recipes().values())
        shards = Catalog(workspace.sources).partitions()
        partitions = [partition for partition, (source, _) in shards.items() if source == name]
        if not partitions:
            raise SourceFault(
                f"there is no source {name!r}; there are {sorted({source for source, _ in shards.values()})}"
            )
        asyncio.run(_check_policies(workspace, recipes))
        prepare_dagster_home(workspace)
        try:
            _run_jobs(console, workspace, recipes, partitions, train=train)
        except MaterializationFailed:
            print_summary(console, workspace, recipes, list(shards), None)
            raise
        print_summary(console, workspace, recipes, list(shards), time.monotonic() - started)


def _run_jobs(
    console: Console, workspace: Workspace, recipes: Sequence[Recipe], partitions: Sequence[str], *, train: bool
) -> None:
    defs = definitions()
    with dg.DagsterInstance.get() as instance:
        close_abandoned_runs(instance)
        for partition in partitions:
            materialize(defs.resolve_job_def(SFT), instance, console, partition=partition)
        materialize(defs.resolve_job_def(DATASETS), instance, console)
        if train and not any(workspace.tables.n_rows(TableKey(ASSET, recipe.family)) for recipe in recipes):
            console.print("No trajectory passed its checks, so there is nothing to train on.")
        elif train:
            materialize(defs.resolve_job_def(TRAIN), instance, console)


async def _check_policies(workspace: Workspace, recipes: Sequence[Recipe]) -> None:
    roles = [PolicyResource.from_settings(role) for role in ("POLICY", "CONVERT", "JUDGE")]
    asked = {role.model_dump_json(): role for role in roles if role.kind == "openai"}
    for role in asked.values():
        policy = role.for_recipe(recipes[0], workspace.images)
        await policy.check()
        await policy.close()
