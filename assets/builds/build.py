"""Builds of a command: a source through every SFT family or RL stage to datasets and a trained checkpoint."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
from rich.console import Console

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.image_pool import POOL, require_pool
from darkroom.annotation.rounds.tables import ACCEPTED
from darkroom.assets.builds.child_process import child_build
from darkroom.assets.builds.jobs import Jobs, MaterializationFailed, ShardRun, open_jobs
from darkroom.assets.clusters.placement import LOCAL, TRAIN
from darkroom.assets.clusters.programs import Program, shared_imports
from darkroom.assets.definitions import ANNOTATION, RELEASED, RL, RL_DATASET, SFT
from darkroom.assets.graph.families import REJECTS, SAMPLES as SAMPLES_KEY, stage_key
from darkroom.assets.graph.resources import policies
from darkroom.assets.graph.rl import RL_STAGES
from darkroom.assets.graph.training_config import DEMO_SETTINGS
from darkroom.assets.terminal.summary import print_annotated_summary, print_rl_summary, print_summary
from darkroom.pipelines.command_line.console import CONSOLE
from darkroom.pipelines.generation import released
from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.funnel import Yield, next_limits
from darkroom.pipelines.generation.recipes import Recipe, load_recipes, quotas
from darkroom.pipelines.publishing.rl_dataset import ANNOTATED, rl_folder
from darkroom.pipelines.publishing.sft_dataset import ASSET
from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.catalog import EMBEDDED, EMBEDDED_RL, Catalog
from darkroom.pipelines.sources.source_config import Use
from darkroom.pipelines.storage.storage_errors import AnswersPending
from darkroom.pipelines.storage.workspace import Workspace

N_ROWS_A_RUN = 50
"""Rows of a quota, at least, for which a shard is run on a cluster: a run takes seconds of its own."""
N_IN_CHILD = 10
"""So many families are built by the child process on the demo's further shards, the rest by the command itself."""


def build_sft(
    console: Console,
    source: str,
    *,
    train: bool,
    families: Sequence[str] = (),
    n_rows: int | None = None,
    family_quotas: Mapping[str, int] | None = None,
    with_rl: bool = False,
    runs_on: str = LOCAL,
) -> None:
    """Materialise ``families`` (empty: all) on every shard of a source, ships the datasets, and trains if ``train``.

    ``with_rl``: with RL prompts and annotations, all bundled (`make demo`). With ``n_rows`` (in the published mixture)
    or ``family_quotas``, families stop drafting when they have their rows. ``runs_on``: where the shards' runs and the
    training execute. Finished work is skipped. Prints the summary, also after a failed job. Raises ``SourceError``,
    ``UserError`` and ``PolicyUnavailable`` before any work, ``MaterializationFailed`` with the asset's message.
    """
    with Workspace.from_environment() as workspace:
        recipes = families_of(workspace, source)
        catalog = catalog_partitions(workspace)
        partitions = partitions_of(catalog, source)
        asyncio.run(check_policies(workspace, recipes))
        chosen = [recipe for recipe in recipes if not families or recipe.family in families]
        used: dict[Use, list[str]] = {"released" if _job(recipes) == RELEASED else "sft": partitions}
        if with_rl:
            used["rl"] = partitions_of(catalog, EMBEDDED_RL)
        mixture = quotas(recipes, n_rows=n_rows) | dict(family_quotas or {})
        mixture = {recipe.family: mixture[recipe.family] for recipe in chosen if recipe.family in mixture}
        summarise = partial(print_summary, console, workspace, recipes, list(catalog))
        is_demo = source == EMBEDDED
        waited_for = {"families": with_rl, "street_signs": train and is_demo, "rl": with_rl}
        parts = [part for part, is_built in waited_for.items() if is_built]
        program = Program("darkroom.assets.builds.demo", tuple(parts))
        with (
            _summarised(summarise),
            child_build(console, program) if parts else nullcontext() as child,
            open_jobs(console, workspace, used, runs_on, on_first_trajectory=child.start if child else None) as jobs,
        ):
            fill_shards(jobs, chosen, partitions[:1] if with_rl else partitions, mixture)
            if child and with_rl:
                fill_shards(jobs, chosen[N_IN_CHILD:], partitions[1:], {})
                child.wait("families")
            jobs.ship(mixture)
            if train and not is_demo:
                _train(jobs, chosen)
            elif child and train:
                child.wait("street_signs")
                with shared_imports():
                    _train_on_street_signs(jobs, "base_model", "evaluation", "sft_checkpoint", evaluated="base")
                    child.wait("rl")  # Dagster takes a checkpoint for stale that is older than the RL dataset
                    _train_on_street_signs(jobs, "grpo_checkpoint", "evaluation", evaluated="grpo")


def families_of(workspace: Workspace, source: str) -> list[Recipe]:
    """The families of a source: those of releases for released trajectories, the recipes for any other."""
    config = Catalog(workspace.sources).configs().get(source)
    return list(released.RELEASED) if config is not None and config.is_release else list(load_recipes().values())


def build_rl(source: str, *, n_rows: int | None, source_quotas: Mapping[str, int], runs_on: str) -> None:
    """Materialise every RL stage on every shard of a source, on ``runs_on``, then the RL dataset here. Finished work is
    skipped. Prints the summary, also after a failed job. Raises ``SourceError`` before any work, else as ``build_sft``.
    """
    with Workspace.from_environment() as workspace:
        catalog = catalog_partitions(workspace)
        partitions = partitions_of(catalog, source)
        mix = {"quotas": dict(source_quotas), "n_rows": n_rows}
        summarise = partial(print_rl_summary, CONSOLE, workspace, list(catalog))
        with _summarised(summarise), open_jobs(CONSOLE, workspace, {"rl": partitions}, runs_on) as jobs:
            build_rl_stages(jobs, partitions, mix=mix)


def build_annotated(*, n_rows: int | None, source_quotas: Mapping[str, int]) -> None:
    """The annotation tables from the journal, then the RL dataset with the accepted records; prints the summary. Raises
    ``AnnotationError`` while no record is accepted, ``MaterializationFailed`` with the asset's message."""
    with Workspace.from_environment() as workspace, open_jobs(CONSOLE, workspace) as jobs:
        require_pool(workspace.tables)
        jobs.run(ANNOTATION)
        if not workspace.tables.n_rows(ACCEPTED):
            mend = "`darkroom annotate sync` shows the rounds they wait for"
            raise AnnotationError(f"no record is accepted yet, of {workspace.tables.n_rows(POOL):,} images; {mend}")
        jobs.run(RL_DATASET, settings={"rl_dataset": {"quotas": dict(source_quotas), "n_rows": n_rows}})
        print_annotated_summary(CONSOLE, workspace)


@contextmanager
def _summarised(summarise: "partial[None]") -> Iterator[None]:
    """Print the summary at the end, with the duration only if no job failed."""
    started = time.monotonic()
    try:
        yield
    except (MaterializationFailed, AnswersPending):
        summarise()
        raise
    summarise(seconds=time.monotonic() - started)


def catalog_partitions(workspace: Workspace) -> dict[str, str]:
    return {partition: source for partition, (source, _) in Catalog(workspace.sources).partitions().items()}


def partitions_of(catalog: Mapping[str, str], source: str) -> list[str]:
    partitions = [partition for partition, name in catalog.items() if name == source]
    if source == ANNOTATED and not partitions:
        raise SourceError("people's accepted records are no source; `darkroom annotate finish` builds their RL rows")
    if not partitions and source in (EMBEDDED, EMBEDDED_RL):
        Catalog(Path()).open(source)  # raises: a package of its extra is not installed
    if not partitions:
        names = sorted(set(catalog.values()))
        raise SourceError(f"there is no source {source!r}; choose from {names}, or add one (`darkroom sources --help`)")
    return partitions


def fill_shards(
    jobs: Jobs, recipes: Sequence[Recipe], partitions: Sequence[str], family_quotas: Mapping[str, int]
) -> None:
    """Every family on every shard; one with a quota in rounds, until no row is missing or its samples are used up. A
    round's limits follow from the rows that the rounds before accepted: the same rows whatever runs are killed or slow.
    """
    free = [recipe for recipe in recipes if recipe.family not in family_quotas]
    if stages := _stages(free):
        unfinished = jobs.unfinished(_job(free), partitions, [SAMPLES_KEY, *stages])
        jobs.run_shards(_job(free), dict.fromkeys(unfinished, ShardRun(stages)))
    limited = {recipe.family: recipe for recipe in recipes if recipe.family in family_quotas}
    yields: dict[str, dict[str, Yield]] = {family: {} for family in limited}
    n_each = None if jobs.runs_on == LOCAL else N_ROWS_A_RUN
    while limits := _next_round(partitions, family_quotas, yields, n_each):
        work = {}
        for partition, limit in limits.items():
            settings = {f"{family}__drafts": {"n_most": n_most} for family, n_most in limit.items()}
            work[partition] = ShardRun(_stages([limited[family] for family in limit]), settings)
        jobs.run_shards(_job(recipes), work)
        for partition, limit in limits.items():
            for family, n_most in limit.items():
                n_rows = (jobs.n_rows((family, stage), partition) for stage in ("drafts", "trajectories"))
                yields[family][partition] = Yield(n_most, *n_rows)


def _next_round(
    partitions: Sequence[str], quotas: Mapping[str, int], yields: Mapping[str, Mapping[str, Yield]], n_each: int | None
) -> dict[str, dict[str, int]]:
    """Samples to draft in all, by shard and family; empty when no family has anything left to do."""
    limits = {family: next_limits(quotas[family], partitions, made, n_each=n_each) for family, made in yields.items()}
    by_shard = {shard: {name: limit[shard] for name, limit in limits.items() if shard in limit} for shard in partitions}
    return {shard: limit for shard, limit in by_shard.items() if limit}


def _stages(recipes: Sequence[Recipe]) -> list[dg.AssetKey]:
    return [stage_key(recipe.family, stage) for recipe in recipes for stage in (*STAGES, REJECTS)]


def _job(recipes: Sequence[Recipe]) -> str:
    return RELEASED if any(recipe.writer == "released" for recipe in recipes) else SFT


def build_rl_stages(jobs: Jobs, partitions: Sequence[str], *, mix: Mapping[str, Any] | None = None) -> None:
    unfinished = jobs.unfinished(RL, partitions, [SAMPLES_KEY, *map(dg.AssetKey, RL_STAGES)])
    jobs.run_shards(RL, dict.fromkeys(unfinished, ShardRun()))
    jobs.run(RL_DATASET, settings={"rl_dataset": mix} if mix else None)


def _train(jobs: Jobs, recipes: Sequence[Recipe]) -> None:
    if not any(jobs.n_rows(ASSET, recipe.family) for recipe in recipes):
        jobs.console.print("No trajectory passed its checks, so there is nothing to train on.")
        return
    # without RL prompts, as after `darkroom materialize`, GRPO takes the questions of the trajectories
    prompts = "rl" if rl_folder(jobs.workspace).exists() else "sft"
    run = jobs.run if jobs.runs_on == LOCAL else jobs.run_on_cluster
    run(TRAIN, settings={"grpo_checkpoint": {"prompts": prompts}})


def _train_on_street_signs(jobs: Jobs, *assets: str, evaluated: str) -> None:
    """The tiny model on the questions that it can learn; ``evaluated`` is the checkpoint of the evaluation."""
    settings = {**DEMO_SETTINGS, "evaluation": {**DEMO_SETTINGS["evaluation"], "checkpoint": evaluated}}
    jobs.run(TRAIN, settings={name: settings[name] for name in assets}, only=[dg.AssetKey(name) for name in assets])


async def check_policies(workspace: Workspace, recipes: Sequence[Recipe]) -> None:
    """Call every endpoint once, so that a wrong setting fails before any work. Raises ``PolicyUnavailable``."""
    roles = [resource for name, resource in policies().items() if name != "student" and resource.kind != "oracle"]
    for endpoint in {role.model_dump_json(): role for role in roles}.values():
        policy = endpoint.for_recipe(recipes[0], workspace)
        try:
            await policy.check()
        finally:
            await policy.close()
