"""Find the shards on which a job has work left, and whether the datasets are finished, so that no run is launched for
the others: to start one takes seconds of CPU, to read the footers of a shard's tables takes milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property

import dagster as dg

from darkroom.assets.graph.datasets import SFT_DATASET, sft_datasets
from darkroom.assets.graph.families import REJECTS, SAMPLES, STAGE_SETTINGS, stage_key, work_on_family
from darkroom.assets.graph.resources import DatasetSettings, PolicyResource
from darkroom.assets.graph.rl import RL_STAGES, rl_settings, work_on_rl
from darkroom.assets.graph.stage_assets import StageInputs
from darkroom.pipelines.generation.engine import STAGES, intake
from darkroom.pipelines.generation.released import all_recipes
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.stage_runs import NotFinished, finished_only
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError

_N_AT_ONCE = 16
"""Shards that are looked at side by side: an object store answers in milliseconds."""
_IN_ORDER = (SAMPLES.path[-1], *RL_STAGES, *STAGES, REJECTS)


def are_shipped(workspace: Workspace, instance: dg.DagsterInstance, quotas: Mapping[str, int]) -> bool:
    """True if the SFT datasets are as a run would make them, and Dagster saw them after the last trajectories."""
    recipes = list(all_recipes().values())
    keys = [SFT_DATASET, *(stage_key(recipe.family, STAGES[-1]) for recipe in recipes)]
    entries = [record.asset_entry for record in instance.get_asset_records(keys)]
    seen = {entry.asset_key: entry.last_materialization_storage_id or 0 for entry in entries}
    if SFT_DATASET not in seen or seen[SFT_DATASET] < max(seen.values()):
        return False
    with suppress(NotFinished, UserError), finished_only():
        for dataset in sft_datasets(workspace, recipes, DatasetSettings(quotas=dict(quotas))):
            dataset.publish()
        return True
    return False


@dataclass(frozen=True)
class UnfinishedShards:
    """Look for shards on which the assets ``keys`` have work to do, with the settings that a run has by default."""

    workspace: Workspace
    instance: dg.DagsterInstance
    policies: Mapping[str, PolicyResource]
    keys: Sequence[dg.AssetKey]

    def among(self, partitions: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """Every partition, in order, and whether something is left to do there."""
        with ThreadPoolExecutor(_N_AT_ONCE) as threads:
            yield from zip(partitions, threads.map(self._has_work, partitions), strict=True)

    def _has_work(self, partition: str) -> bool:
        """True if something is left to do, or the look at a stage fails: the run says why."""
        if partition not in self._recorded:
            return True
        try:
            with finished_only():
                for look in self._looks:
                    look(partition)
        except (NotFinished, UserError):
            return True
        return False

    @cached_property
    def _recorded(self) -> set[str]:
        """Shards of which Dagster has seen all assets materialised: another history shows them again."""
        recorded = [self.instance.get_materialized_partitions(key) for key in self.keys]
        return set.intersection(*recorded) if recorded else set()

    @cached_property
    def _looks(self) -> list[Callable[[str], object]]:
        return [self._look(key) for key in sorted(self.keys, key=lambda key: _IN_ORDER.index(key.path[-1]))]

    def _look(self, key: dg.AssetKey) -> Callable[[str], object]:
        if key == SAMPLES:
            return self._intake()
        *family, stage = key.path
        if not family:
            settings = rl_settings(stage)()
            return lambda partition: work_on_rl(self._inputs(partition, settings), stage)
        recipe, kind = all_recipes()[family[0]], STAGE_SETTINGS.get(stage)
        chosen = kind() if kind else None
        return lambda partition: work_on_family(self._inputs(partition, chosen), recipe, stage)

    def _intake(self) -> Callable[[str], object]:
        """A look at the samples, which opens each source once: to know whether it has changed may take reading it."""
        catalog = Catalog(self.workspace.sources)
        shards, opened = catalog.partitions(), cache(catalog.open)

        def look(partition: str) -> object:
            source, shard = shards[partition]
            return intake(self.workspace, opened(source), shard, partition)

        return look

    def _inputs(self, partition: str, settings: dg.Config | None) -> StageInputs:
        return StageInputs(self.workspace, partition, self.policies.__getitem__, settings)
