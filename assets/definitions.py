"""The definitions that ``dg`` loads: the assets of every recipe, resources, and jobs as named selections of assets."""

from __future__ import annotations

import gc
from contextlib import suppress

_COLLECTS = gc.isenabled()
# what is loaded stays: looking through it for garbage would be a fifth of the time
gc.disable()

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import dagster as dg
import yaml

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import FILE, Campaign
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.pre_annotations import PRE_ANNOTATIONS
from darkroom.annotation.rounds.tables import ORDER, REFUSED
from darkroom.assets.clusters.lost_runs import lost_runs
from darkroom.assets.clusters.placement import TRAIN, RunSettings
from darkroom.assets.clusters.programs import LauncherResource
from darkroom.assets.graph import annotation, training
from darkroom.assets.graph.batch_sensor import answered_batches
from darkroom.assets.graph.datasets import expert_reviews_asset, rl_dataset_asset, sft_dataset_asset
from darkroom.assets.graph.families import family_assets, samples_asset
from darkroom.assets.graph.partitions import nightly, shard_sensor, source_partitions
from darkroom.assets.graph.resources import WorkspaceResource, at_launch, policies
from darkroom.assets.graph.rl import GROUP as RL_GROUP, rl_assets
from darkroom.assets.pages.declared_metadata import with_code_references
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.released import RELEASED as RELEASES, all_recipes
from darkroom.pipelines.publishing.judge_stats import REVIEWS
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.workspace import Workspace

SAMPLES, SFT, RELEASED = "source_samples", "sft_trajectories", "released_trajectories"
DATASETS, STREET_SIGNS = "datasets", "street_sign_datasets"
RL, RL_DATASET = "rl_prompts", "rl_dataset_all"
ANNOTATION, RECORDED_ANNOTATIONS = annotation.JOB, "recorded_annotations"
FINISHED_ANNOTATIONS = "finished_annotations"
BUNDLED_RECORDING = {step: {"recording": "bundled"} for step in ("annotation_pool", "annotation_rounds")}
"""Settings with which these steps read the bundled recording."""
_DESCRIPTIONS = yaml.safe_load(Path(__file__).with_name("jobs.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Options:
    """The optional assets that there are; all by default. Assets that could only stand as never materialised are left
    out of the UI. A command has all, as it may be the first to make one."""

    releases: bool = True
    """The families of released trajectories: a source of that kind, or their tables."""
    annotation: bool = True
    """A campaign, or the pool of a recorded one."""
    pre_annotations: bool = True
    """A campaign that asks for them, or their table."""
    expert_reviews: bool = True
    """A campaign, or their tables."""
    street_signs: bool = True
    """Their datasets, which `darkroom demo` makes."""

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """The options that a workspace's sources, settings or tables name. Raises ``SourceError``, ``StorageError``."""
        present = set(workspace.tables.families())
        has_campaign = (workspace.annotation / FILE).exists()
        return cls(
            releases=any(source.is_release for source in Catalog(workspace.sources).configs().values())
            or any(recipe.family in present for recipe in RELEASES),
            annotation=has_campaign or POOL.asset[0] in present,
            pre_annotations=PRE_ANNOTATIONS.asset[0] in present or (has_campaign and _pre_annotates(workspace)),
            expert_reviews=has_campaign or REVIEWS[0] in present,
            street_signs="street_signs" in present,
        )


ALL = Options()


def _pre_annotates(workspace: Workspace) -> bool:
    with suppress(AnnotationError):
        return Campaign.load(workspace.annotation).pre_annotate != "no"
    return True  # the graph loads; whoever materialises them reads what is wrong with the file


def definitions(options: Options = ALL) -> dg.Definitions:
    """The code location with these optional assets, from the environment and the recipes on disk."""
    recipes = [recipe for recipe in all_recipes().values() if options.releases or recipe.writer != "released"]
    assets = list(_assets(options, recipes))
    present = {key for asset in assets for key in asset.keys}

    def linked(spec: dg.AssetSpec) -> dg.AssetSpec:
        """Leave out dependencies on absent assets, which the graph would show as external."""
        return spec.replace_attributes(deps=[dep for dep in spec.deps if dep.asset_key in present])

    linked_assets = (
        asset if present.issuperset(asset.dependency_keys) else asset.map_asset_specs(linked) for asset in assets
    )
    released, drafted = _families(recipes)
    sensors = [source_partitions, lost_runs, answered_batches]
    sensors += [shard_sensor("sft", drafted), shard_sensor("rl", [RL_GROUP])]
    sensors += [shard_sensor("released", released)] if released else []
    return dg.Definitions(
        assets=list(with_code_references(linked_assets)),
        jobs=jobs(recipes, options),
        schedules=[nightly(DATASETS, 0), nightly(RL_DATASET, 30)],
        sensors=[*sensors, annotation.annotation_sync] if options.annotation else sensors,
        resources={
            "workspace": WorkspaceResource(),
            **policies(),
            "launcher": at_launch(LauncherResource.from_environment()),
        },
        # stages are parallel inside; a process per step would only add its start-up time
        executor=dg.in_process_executor,
    )


def _assets(options: Options, recipes: Sequence[Recipe]) -> Iterator[dg.AssetsDefinition]:
    yield samples_asset()
    for recipe in recipes:
        yield from family_assets(recipe)
    yield sft_dataset_asset(recipes)
    yield from rl_assets()
    yield rl_dataset_asset()
    yield from (training.base_model, training.sft_checkpoint, training.grpo_checkpoint, training.evaluation)
    if options.expert_reviews:
        yield expert_reviews_asset(recipes)
    if options.annotation:
        yield from (annotation.annotation_pool, annotation.annotation_rounds)
    if options.pre_annotations:
        yield annotation.pre_annotations
    if options.street_signs:
        yield training.street_signs


def _families(recipes: Sequence[Recipe]) -> tuple[list[str], list[str]]:
    released = [recipe.family for recipe in recipes if recipe.writer == "released"]
    return released, [recipe.family for recipe in recipes if recipe.writer != "released"]


def jobs(recipes: Sequence[Recipe], options: Options) -> list[Any]:
    """Jobs as named selections of assets; Dagster does not export their type."""
    assets, groups = dg.AssetSelection.assets, dg.AssetSelection.groups
    released, drafted = _families(recipes)
    rounds = ["/".join(table.asset) for table in (*ORDER, REFUSED)]
    selections: dict[str, dg.AssetSelection] = {SAMPLES: assets("samples"), SFT: groups(*drafted)}
    selections |= {DATASETS: assets("sft_dataset"), RL: groups(RL_GROUP)}
    selections |= {RL_DATASET: assets("rl_dataset"), TRAIN: groups(training.GROUP)}
    if options.releases:
        selections[RELEASED] = groups(*released)
    if options.street_signs:
        selections[STREET_SIGNS] = assets("street_signs")
    if options.annotation:
        selections[ANNOTATION] = assets(*rounds)
        selections[FINISHED_ANNOTATIONS] = assets(*rounds, "rl_dataset")
        selections[RECORDED_ANNOTATIONS] = assets("/".join(POOL.asset), *rounds)
    config = {RECORDED_ANNOTATIONS: op_config(BUNDLED_RECORDING)}
    tags = {TRAIN: RunSettings.from_environment().training_tags()}
    return [
        dg.define_asset_job(name, selection, config.get(name), _DESCRIPTIONS[name], tags.get(name))
        for name, selection in selections.items()
    ]


def op_config(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"ops": {step: {"config": config} for step, config in settings.items()}} if settings else {}


@dg.definitions
def defs() -> dg.Definitions:
    """The code location that Dagster loads, with the optional assets that apply to the workspace."""
    with Workspace.from_environment() as workspace:
        return definitions(Options.of(workspace))


gc.freeze()
if _COLLECTS:
    gc.enable()
