"""The whole way once: the embedded source through every family to a trained checkpoint."""

import asyncio
import time

import dagster as dg
from rich.console import Console

from assets.definitions import definitions
from assets.home import close_abandoned_runs, prepare_dagster_home
from assets.jobs import DATASETS, SFT, TRAIN
from assets.materialize import materialize
from assets.resources import PolicyResource
from assets.summary import print_summary
from pipelines.recipes import load_recipes
from pipelines.sources import Catalog
from pipelines.sources.catalog import EMBEDDED
from pipelines.workspace import Workspace


def run_demo(console: Console, *, train: bool = True) -> None:
    """Materialises the graph on the embedded source, trains on the result, prints what there is.

    Raises ``PolicyUnavailable`` before any work, ``MaterializationFailed`` with the asset's words.
    """
    started = time.monotonic()
    with Workspace.from_environment() as workspace:
        recipes = list(load_recipes().values())
        asyncio.run(_check_policy(workspace))
        prepare_dagster_home(workspace)
        shards = Catalog(workspace.sources).partitions()
        partitions = [partition for partition, (source, _) in shards.items() if source == EMBEDDED]
        defs = definitions()
        with dg.DagsterInstance.get() as instance:
            close_abandoned_runs(instance)
            for partition in partitions:
                materialize(defs.resolve_job_def(SFT), instance, console, partition=partition)
            materialize(defs.resolve_job_def(TRAIN if train else DATASETS), instance, console)
        print_summary(console, workspace, recipes, partitions, time.monotonic() - started)


async def _check_policy(workspace: Workspace) -> None:
    settings = PolicyResource.from_settings()
    for recipe in load_recipes().values():
        policy = settings.for_recipe(recipe, workspace.images)
        await policy.check()
        await policy.close()
