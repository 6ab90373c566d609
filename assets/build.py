"""The whole way: a source through every family to shipped datasets and a trained checkpoint."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from rich.console import Console

from assets.annotation import BUNDLED_SETTINGS, RECORDED_JOB
from assets.definitions import definitions
from assets.families import stage_key
from assets.home import close_abandoned_runs, prepare_dagster_home
from assets.jobs import DATASETS, RL, RL_DATASET, SFT, TRAIN
from assets.materialize import MaterializationFailed, materialize
from assets.resources import PolicyResource
from assets.summary import print_summary
from pipelines.engine import SAMPLES, STAGES
from pipelines.filling import Yield, next_limit
from pipelines.publish import ASSET
from pipelines.recipes import Recipe, load_recipes, quotas
from pipelines.rl.shipment import folder_of
from pipelines.sources import Catalog, SourceFault
from pipelines.tables import TableKey
from pipelines.workspace import Workspace


def materialize_source(
    console: Console,
    name: str,
    *,
    train: bool,
    families: Sequence[str] = (),
    n_rows: int | None = None,
    wanted: Mapping[str, int] | None = None,
    rl: str = "",
) -> None:
    """Materialises every family on every shard of one source, ships the datasets, trains on them if asked.

    ``families`` are the only ones that are worked on; empty: all. ``rl`` names a source of RL prompts, which are
    measured and shipped with the bundled annotations (`make demo`). With ``n_rows`` (in the published mixture) or
    ``wanted`` (rows by family), families stop drafting when they have their rows. What is finished is not done again.
    Prints what there is, also when a job failed. Raises ``SourceFault``, ``PolicyUnavailable`` before any work,
    ``MaterializationFailed`` with the asset's words.
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
        by_family = quotas(recipes, n_rows=n_rows) | dict(wanted or {})
        try:
            with dg.DagsterInstance.get() as instance:
                close_abandoned_runs(instance)
                chosen = [recipe for recipe in recipes if not families or recipe.family in families]
                build = _Build(console, workspace, instance, chosen, by_family)
                build.run(partitions)
                if rl:
                    build.run_rl([partition for partition, (source, _) in shards.items() if source == rl])
                if train:
                    build.train()
        except MaterializationFailed:
            print_summary(console, workspace, recipes, list(shards), None)
            raise
        print_summary(console, workspace, recipes, list(shards), time.monotonic() - started)


class _Build:
    """One command's runs, on the instance that the UI shows."""

    def __init__(
        self,
        console: Console,
        workspace: Workspace,
        instance: dg.DagsterInstance,
        recipes: Sequence[Recipe],
        quotas: Mapping[str, int],
    ) -> None:
        self._console, self._workspace, self._instance = console, workspace, instance
        families = {recipe.family for recipe in recipes}
        self._recipes = recipes
        self._quotas = {family: n for family, n in quotas.items() if family in families}
        self._defs = definitions()

    def run(self, partitions: Sequence[str]) -> None:
        """Every family on every shard, and the datasets."""
        accepted = dict.fromkeys(self._quotas, 0)
        for partition in partitions:
            self._fill(partition, accepted)
        settings = {"sft_dataset": {"quotas": dict(self._quotas)}} if self._quotas else None
        self._materialize(DATASETS, settings=settings)

    def run_rl(self, partitions: Sequence[str]) -> None:
        """The RL prompts of a source, and what people wrote in the recorded campaign."""
        self._materialize(RECORDED_JOB, settings=BUNDLED_SETTINGS)
        for partition in partitions:
            self._materialize(RL, partition=partition)
        self._materialize(RL_DATASET)

    def train(self) -> None:
        """On what ships, if anything does."""
        if any(self._n_rows(ASSET, recipe.family) for recipe in self._recipes):
            # without RL prompts, as after `darkroom materialize`, the trajectories' own questions are asked
            prompts = "rl" if folder_of(self._workspace).exists() else "sft"
            self._materialize(TRAIN, settings={"grpo_checkpoint": {"prompts": prompts}})
        else:
            self._console.print("No trajectory passed its checks, so there is nothing to train on.")

    def _fill(self, partition: str, accepted: dict[str, int]) -> None:
        """One shard, drafted again with larger numbers until every quota is full or its samples are exhausted."""
        missing = {family: max(0, n - accepted[family]) for family, n in self._quotas.items()}
        limits: dict[str, int | None] = {family: next_limit(n, None) for family, n in missing.items()}
        drawn = {family: limit or 0 for family, limit in limits.items()}
        while True:
            settings = {f"{family}__drafts": {"n_most": n} for family, n in drawn.items()}
            self._materialize(SFT, partition=partition, settings=settings, only=self._assets())
            yields = {family: self._yield(family, partition, n) for family, n in drawn.items()}
            limits = {family: next_limit(missing[family], found) for family, found in yields.items()}
            if not any(limits.values()):
                break
            drawn |= {family: limit for family, limit in limits.items() if limit}
        for family, found in yields.items():
            accepted[family] += found.n_accepted

    def _yield(self, family: str, partition: str, n_most: int) -> Yield:
        tables = self._workspace.tables
        n_drafted = tables.n_rows(TableKey((family, "drafts"), partition))
        return Yield(n_most, n_drafted, tables.n_rows(TableKey((family, "trajectories"), partition)))

    def _n_rows(self, asset: tuple[str, ...], partition: str) -> int:
        return self._workspace.tables.n_rows(TableKey(asset, partition))

    def _assets(self) -> list[dg.AssetKey]:
        stages = [stage_key(recipe.family, stage) for recipe in self._recipes for stage in (*STAGES, "rejects")]
        return [dg.AssetKey(list(SAMPLES)), *stages]

    def _materialize(
        self,
        job: str,
        *,
        partition: str | None = None,
        settings: Any = None,
        only: Sequence[dg.AssetKey] | None = None,
    ) -> None:
        resolved = self._defs.resolve_job_def(job)
        materialize(resolved, self._instance, self._console, partition=partition, settings=settings, only=only)


async def _check_policies(workspace: Workspace, recipes: Sequence[Recipe]) -> None:
    roles = [PolicyResource.from_settings(role) for role in ("POLICY", "CONVERT", "JUDGE")]
    asked = {role.model_dump_json(): role for role in roles if role.kind == "openai"}
    for role in asked.values():
        policy = role.for_recipe(recipes[0], workspace)
        await policy.check()
        await policy.close()
