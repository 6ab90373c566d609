"""Assets: the samples of every source; drafts -> runs -> verdicts -> trajectories, and rejects of every family. One
partition per shard (``demo-0000``), never one per row."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from darkroom.assets.graph.partitions import SHARDS, SHARDS_OF
from darkroom.assets.graph.resources import DraftSettings, VerdictSettings
from darkroom.assets.graph.stage_assets import SPECS, StageInputs, stage_asset, stage_result
from darkroom.assets.pages import metadata as pages
from darkroom.assets.pages.declared_metadata import code_references
from darkroom.pipelines.generation import engine, stage
from darkroom.pipelines.generation.engine import STAGES, Family
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.released import ReleasedPolicy
from darkroom.pipelines.publishing.judge_stats import judge_stats_of, origins_of
from darkroom.pipelines.records import Draft, Reject, Sample, Trajectory
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.stage_runs import StageReport
from darkroom.pipelines.storage.tables import TableKey

SAMPLES = dg.AssetKey(list(stage.SAMPLES))
REJECTS = "rejects"
_FIRST = "crop"
"""The family of few and short rollouts: a first trajectory is on the screen soon."""


def samples_asset() -> dg.AssetsDefinition:
    return stage_asset(
        SAMPLES, SPECS["samples"], _read_shard, record=Sample, deps=(), group="source", partitions=SHARDS
    )


def ensure_samples(work: StageInputs) -> None:
    """Read the run's shard if that is not done yet, as the asset ``samples`` does; for the stages after it. No job
    holds both, their partitions differ: this saves a run per shard."""
    recorded = dg.AssetRecordsFilter(asset_key=SAMPLES, asset_partitions=[work.partition])
    is_read = work.workspace.tables.exists(TableKey(stage.SAMPLES, work.partition))
    assert work.context is not None, "samples are read in a run"
    if is_read and work.context.instance.fetch_materializations(recorded, limit=1).records:
        return
    result = _read_shard(work)
    tags = {"dagster/data_version": result.data_version.value} if result.data_version else {}
    work.context.log_event(dg.AssetMaterialization(SAMPLES, None, result.metadata, work.partition, tags))


def _read_shard(work: StageInputs) -> dg.MaterializeResult:
    tables, images = work.workspace.tables, work.workspace.images
    catalog = Catalog(work.workspace.sources)
    source, shard = catalog.partitions()[work.partition]
    report = engine.intake(work.workspace, catalog.open(source), shard, work.partition)
    samples = tables.read(TableKey(stage.SAMPLES, work.partition), Sample)
    return stage_result(tables, report, n_in=report.n_in, details=pages.samples_pages(samples, images))


def family_assets(recipe: Recipe) -> list[dg.AssetsDefinition]:
    partitions = SHARDS_OF["released" if recipe.writer == "released" else "sft"]
    upstream = [SAMPLES, *(stage_key(recipe.family, stage) for stage in STAGES[:-1])]
    stages = [_stage(recipe, stage, above, partitions) for stage, above in zip(STAGES, upstream, strict=True)]
    return [*stages, _rejects(recipe, partitions)]


def stage_key(family: str, stage: str) -> dg.AssetKey:
    """``crop/drafts``."""
    return dg.AssetKey([family, stage])


def family_funnel(family: Family) -> dg.MetadataValue:
    """Rows left after each stage of the family, of the samples that are for it."""
    tables = family.workspace.tables
    n_not_applicable = sum(tables.facts(family.key(stage))["n_not_applicable"] for stage in STAGES)
    counts = {"applicable": tables.n_rows(family.samples_key) - n_not_applicable}
    return pages.funnel(counts | {stage: tables.n_rows(family.key(stage)) for stage in STAGES})


STAGE_SETTINGS: Mapping[str, type[dg.Config]] = {"drafts": DraftSettings, "verdicts": VerdictSettings}


def work_on_family(work: StageInputs, recipe: Recipe, stage: str) -> StageReport:
    """One stage of a recipe, or its ``rejects``. Raises what ``Family`` raises."""
    family, workspace, policy = _family(work, recipe), work.workspace, work.policies
    is_released = recipe.writer == "released"  # the release wrote the turns: no policy is asked
    if stage == REJECTS:
        return family.collect_rejects()
    if stage == "trajectories":
        return family.keep()
    if stage == "verdicts" and is_released:
        return family.check()
    if stage == "verdicts":
        judge, writer = policy("judge"), policy("policy")
        necessity = work.settings.necessity(recipe, is_free=writer.kind == "oracle")
        unaided = writer.for_recipe(recipe, workspace) if necessity else None
        measured = {"unaided": unaided, "necessity": necessity, "judges_leaks": work.settings.judges_leaks()}
        return family.check(judge.for_judging(recipe.family, workspace), n_votes=judge.n_votes, **measured)
    role = "converter" if recipe.writer == "convert" else "policy"
    writing = ReleasedPolicy() if is_released else policy(role).for_recipe(recipe, workspace)
    if stage == "runs":
        return family.run(writing)
    planner = policy("policy").for_recipe(recipe, workspace) if recipe.plan and not is_released else None
    return family.draft(writing, planner, n_most=work.settings.n_most)


def _family(work: StageInputs, recipe: Recipe) -> Family:
    return Family(work.workspace, recipe, work.partition, work.progress)


def _stage(
    recipe: Recipe, stage: str, upstream: dg.AssetKey, partitions: dg.PartitionsDefinition
) -> dg.AssetsDefinition:
    spec = SPECS[stage]

    def perform(work: StageInputs) -> dg.MaterializeResult:
        if upstream == SAMPLES:
            ensure_samples(work)
        report, tables = work_on_family(work, recipe, stage), work.workspace.tables
        n_in = tables.n_rows(TableKey(tuple(upstream.path), work.partition))
        return stage_result(tables, report, n_in=n_in, details=_details(_family(work, recipe), stage, report))

    return stage_asset(
        stage_key(recipe.family, stage),
        spec._replace(description=f"{spec.description} {recipe.description}"),
        perform,
        record=Draft if stage == "drafts" else Trajectory,
        deps=[upstream],
        group=recipe.family,
        partitions=partitions,
        settings=STAGE_SETTINGS.get(stage),
        code_version=recipe.digest[:12],
        metadata={"recipe": dg.MetadataValue.path(str(recipe.file)), **code_references(perform, recipe.file)},
        priority=-1 if stage == "drafts" and recipe.family != _FIRST else STAGES.index(stage),
    )


def _details(family: Family, stage: str, report: StageReport) -> dict[str, Any]:
    tables, images = family.workspace.tables, family.workspace.images
    origins = pages.texts(origins_of(tables, report.key, [family.partition]))
    if stage == "drafts":
        return {**origins}
    questions = dict(tables.columns(family.samples_key, "sample_id", "question"))
    trajectories = tables.read(report.key, Trajectory)
    details: dict[str, Any] = {
        **origins,
        **pages.trajectories_examples(trajectories, questions, images),
        "preview": pages.trajectories_preview(trajectories, questions, images),
    }
    if stage in ("verdicts", "trajectories"):
        details |= pages.judging_metadata(judge_stats_of(tables, family.recipe.family, [family.partition]))
    if stage == "trajectories":
        details["funnel"] = family_funnel(family)
    return details


def _rejects(recipe: Recipe, partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    def perform(work: StageInputs) -> dg.MaterializeResult:
        tables = work.workspace.tables
        family, report = _family(work, recipe), work_on_family(work, recipe, REJECTS)
        n_rejects = tables.n_rows(family.samples_key) - tables.n_rows(family.key("trajectories"))
        rejects, details = tables.read(report.key, Reject), {"funnel": family_funnel(family)}
        return stage_result(tables, report, n_in=n_rejects, details=details, rejects=rejects)

    return stage_asset(
        stage_key(recipe.family, REJECTS),
        SPECS[REJECTS],
        perform,
        record=Reject,
        deps=[stage_key(recipe.family, stage) for stage in STAGES],
        group=recipe.family,
        partitions=partitions,
        priority=len(STAGES),
    )
