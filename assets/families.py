"""One factory turns a recipe into its assets: drafts -> runs -> verdicts -> trajectories, and rejects."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from assets.conservation import check_conservation, conservation_spec
from assets.necessity import VerdictSettings
from assets.previews import (
    funnel,
    judging_metadata,
    rejects_metadata,
    stage_metadata,
    trajectories_examples,
    trajectories_preview,
)
from assets.progress import progress_log
from assets.resources import PolicyResource, WorkspaceResource
from assets.samples import SAMPLES
from pipelines.engine import STAGES, Family
from pipelines.judging import judging_of
from pipelines.recipes import Recipe
from pipelines.records import Reject, Sample, Trajectory
from pipelines.stages import Report
from pipelines.tables import TableKey

_DESCRIPTIONS: Mapping[str, str] = {
    "drafts": "The opening turn of every rollout, written by the policy. Paid: each turn is kept in the ledger.",
    "runs": "Rollouts: programs executed in the sandbox, turns written until there is an answer.",
    "verdicts": "Every check's verdict on every run.",
    "trajectories": "The runs that passed every check.",
}
_KINDS: Mapping[str, set[str]] = {
    "drafts": {"llm", "parquet"},
    "runs": {"python", "parquet"},
    "verdicts": {"parquet"},
    "trajectories": {"parquet"},
}


class DraftSettings(dg.Config):
    """What can be set for one run of a family's drafts."""

    n_most: int | None = Field(
        default=None, description="Draft so many samples and leave the others alone; null: all of the partition."
    )


def family_assets(recipe: Recipe, partitions: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    """The assets of one recipe."""
    upstream = [SAMPLES, *(stage_key(recipe.family, stage) for stage in STAGES[:-1])]
    stages = [_stage_asset(recipe, stage, above, partitions) for stage, above in zip(STAGES, upstream, strict=True)]
    return [*stages, _rejects_asset(recipe, partitions)]


def stage_key(family: str, stage: str) -> dg.AssetKey:
    """``crop/drafts``."""
    return dg.AssetKey([family, stage])


def _stage_asset(
    recipe: Recipe, stage: str, upstream: dg.AssetKey, partitions: dg.PartitionsDefinition
) -> dg.AssetsDefinition:
    key = stage_key(recipe.family, stage)

    def finished(context: dg.AssetExecutionContext, family: Family, report: Report) -> dg.MaterializeResult:
        tables = family.workspace.tables
        n_in = tables.n_rows(TableKey(tuple(upstream.path), context.partition_key))
        return dg.MaterializeResult(
            metadata=_metadata(family, stage, report),
            check_results=[check_conservation(tables, report.key, n_in=n_in)],
        )

    def drafted(
        context: dg.AssetExecutionContext,
        config: DraftSettings,
        workspace: WorkspaceResource,
        policy: PolicyResource,
        converter: PolicyResource,
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            family = Family(opened, recipe, context.partition_key, progress_log(context))
            writer = (converter if recipe.writer == "convert" else policy).for_recipe(recipe, opened)
            planner = policy.for_recipe(recipe, opened) if recipe.plan else None
            return finished(context, family, family.draft(writer, planner, n_most=config.n_most))

    def rolled_out(
        context: dg.AssetExecutionContext,
        workspace: WorkspaceResource,
        policy: PolicyResource,
        converter: PolicyResource,
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            family = Family(opened, recipe, context.partition_key, progress_log(context))
            writer = (converter if recipe.writer == "convert" else policy).for_recipe(recipe, opened)
            return finished(context, family, family.run(writer))

    def judged(
        context: dg.AssetExecutionContext,
        config: VerdictSettings,
        workspace: WorkspaceResource,
        judge: PolicyResource,
        policy: PolicyResource,
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            family = Family(opened, recipe, context.partition_key, progress_log(context))
            necessity = config.necessity(recipe, is_free=policy.kind == "oracle")
            unaided = policy.for_recipe(recipe, opened) if necessity else None
            voter = judge.for_judging(recipe.family, opened)
            report = family.check(voter, n_votes=judge.n_votes, unaided=unaided, necessity=necessity)
            return finished(context, family, report)

    def kept(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> dg.MaterializeResult:
        with workspace.open() as opened:
            family = Family(opened, recipe, context.partition_key)
            return finished(context, family, family.keep())

    make = dg.asset(
        key=key,
        deps=[upstream],
        group_name=recipe.family,
        partitions_def=partitions,
        kinds=_KINDS[stage],
        owners=["team:data"],
        check_specs=[conservation_spec(key)],
        code_version=recipe.digest[:12],
        description=f"{_DESCRIPTIONS[stage]} {recipe.description}",
    )
    performs: dict[str, Callable[..., dg.MaterializeResult]] = {
        "drafts": drafted,
        "runs": rolled_out,
        "verdicts": judged,
        "trajectories": kept,
    }
    return make(performs[stage])


def _metadata(family: Family, stage: str, report: Report) -> dict[str, Any]:
    opened = family.workspace
    metadata: dict[str, Any] = {
        **stage_metadata(report, path=str(opened.tables.path(report.key))),
        **rejects_metadata(opened.tables.read_rejects(report.key)),
    }
    if stage == "drafts":
        return metadata
    questions = {sample.sample_id: sample.question for sample in opened.tables.read(family.samples_key, Sample)}
    trajectories = opened.tables.read(report.key, Trajectory)
    metadata |= trajectories_examples(trajectories, questions, opened.images)
    metadata["preview"] = trajectories_preview(trajectories, questions, opened.images)
    if stage in ("verdicts", "trajectories"):
        metadata |= judging_metadata(judging_of(opened.tables, family.recipe.family, [family.partition]))
    if stage == "trajectories":
        metadata["funnel"] = dg.MetadataValue.md(family_funnel(family))
    return metadata


def family_funnel(family: Family) -> str:
    """Rows that were left after each stage of the family."""
    tables = family.workspace.tables
    steps = [("samples", tables.n_rows(family.samples_key))]
    steps += [(stage, tables.n_rows(family.key(stage))) for stage in STAGES]
    return funnel(steps)


def _rejects_asset(recipe: Recipe, partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    key = stage_key(recipe.family, "rejects")

    @dg.asset(
        key=key,
        deps=[stage_key(recipe.family, stage) for stage in STAGES],
        group_name=recipe.family,
        partitions_def=partitions,
        kinds={"parquet"},
        owners=["team:data"],
        check_specs=[conservation_spec(key)],
        description="What the family's stages took out, with stage, typed reason and evidence. Nothing is dropped.",
    )
    def rejects(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> dg.MaterializeResult:
        with workspace.open() as opened:
            family = Family(opened, recipe, context.partition_key)
            report = family.collect_rejects()
            kept = opened.tables.n_rows(family.key("trajectories"))
            n_lost = opened.tables.n_rows(family.samples_key) - kept
            return dg.MaterializeResult(
                metadata={
                    **stage_metadata(report, path=str(opened.tables.path(report.key))),
                    **rejects_metadata(opened.tables.read(report.key, Reject)),
                    "funnel": dg.MetadataValue.md(family_funnel(family)),
                },
                check_results=[check_conservation(opened.tables, report.key, n_in=n_lost)],
            )

    return rejects
