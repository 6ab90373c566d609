"""RL data in the UI: candidates, checked labels, pass rates, tool necessity, suitability, and the dataset."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import dagster as dg
from pydantic import Field

from annotation.stages import ACCEPTED, read_accepted
from assets.conservation import NAME, check_conservation, conservation_spec
from assets.previews import rejects_metadata, samples_examples, samples_preview, stage_metadata
from assets.progress import progress_lines
from assets.resources import PolicyResource, WorkspaceResource
from assets.rl_pages import dataset_page, stage_page
from assets.samples import SAMPLES
from pipelines.execution import Sandboxes
from pipelines.records import RLRow
from pipelines.rejects import RowFault
from pipelines.rl import candidates, labels, necessity, pass_rates, suitability
from pipelines.rl.candidates import Candidates
from pipelines.rl.dataset import KEY, Mix, materialize_rows
from pipelines.rl.labels import CheckedLabels, read_verifications
from pipelines.rl.necessity import ToolNecessities
from pipelines.rl.pass_rates import PassRates
from pipelines.rl.shard import Shard, Stage
from pipelines.rl.shipment import ship_rows
from pipelines.rl.suitability import Suitability, SuitabilityLabels, Tie
from pipelines.screening import Screening
from pipelines.sources import Catalog
from pipelines.workspace import Workspace

GROUP = "rl"
RL_DATASET = dg.AssetKey(list(KEY.asset))


class CandidateSettings(dg.Config):
    """How samples are screened."""

    n_votes: int = Field(default=1, ge=1, description="Votes of the judge on each question about a sample.")


class LabelSettings(dg.Config):
    """How labels are checked."""

    n_answers: int = Field(default=4, ge=1, description="How often the judge answers each question.")
    stop_early: bool = Field(default=False, description="Ask no further once the majority is certain.")


class PassRateSettings(dg.Config):
    """How pass rates are measured, and which rows they take out (CodeV, §5.1)."""

    n_answers: int = Field(default=8, ge=1, description="How often the student answers each question.")
    max_rate: float = Field(default=0.9, ge=0, le=1, description="Rows with a larger share of right answers go.")
    drop_unsolved: bool = Field(default=False, description="Take rows out that are never solved, instead of a flag.")
    stop_early: bool = Field(default=False, description="Ask no further once it is certain what a row is.")


class NecessitySettings(dg.Config):
    """How the prior of tool necessity is measured (Look Less, Reason More, §4.2.1)."""

    n_forced: int = Field(default=4, ge=1, description="Rollouts with the tool forced.")
    n_forbidden: int = Field(default=4, ge=1, description="Rollouts with the tool forbidden.")


class SuitabilitySettings(dg.Config):
    """How suitability is voted on (FIGR, §4.1)."""

    n_votes: int = Field(default=8, ge=1, description="Votes on each problem.")
    stop_early: bool = Field(default=False, description="Ask no further once the majority is certain.")


class TieSettings(dg.Config):
    """What a tie is taken for."""

    tie: str = Field(default="no", pattern="^(yes|no|reject)$", description="yes, no, or reject the row.")


class MixSettings(dg.Config):
    """What ships."""

    quotas: dict[str, int] = Field(default={}, description="Rows by source, or `annotated` for what people wrote.")
    n_rows: int | None = Field(default=None, ge=0, description="Rows in all; null: what the quotas leave.")
    validation_share: float = Field(default=0.05, ge=0, le=1, description="Of the groups of images, for validation.")


def rl_assets(partitions: dg.StaticPartitionsDefinition) -> list[dg.AssetsDefinition]:
    """The assets of the group ``rl``."""

    def asset(name: str, deps: list[dg.AssetKey], kinds: set[str], description: str) -> Callable[..., Any]:
        key = dg.AssetKey([name])
        return dg.asset(
            key=key,
            deps=deps,
            group_name=GROUP,
            partitions_def=partitions,
            kinds=kinds | {"parquet"},
            owners=["team:data"],
            check_specs=[conservation_spec(key)],
            description=description,
        )

    @asset(
        candidates.ASSET,
        [SAMPLES],
        {"llm"},
        "Samples that may become RL prompts: gradable answers, question and image that belong together, no facts to "
        "look up.",
    )
    def rl_candidates(
        context: dg.AssetExecutionContext,
        config: CandidateSettings,
        workspace: WorkspaceResource,
        judge: PolicyResource,
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            shard = _shard(context, opened)
            screening = Screening(opened)

            @cache
            def faults() -> Mapping[str, RowFault]:
                name = f"{candidates.ASSET}-{shard.partition}"
                return screening.screen_samples(name, list(shard.samples().values())).faults

            asked = judge.for_rl(candidates.ASSET, opened)
            stage = Candidates(judge=asked, n_votes=config.n_votes, screening=screening, faults=faults)
            return _materialized(shard, stage)

    @asset(
        labels.ASSET,
        [dg.AssetKey([candidates.ASSET])],
        {"llm"},
        "Candidates whose label a judge's own answers confirm, or a person. Disputed ones wait for one.",
    )
    def checked_labels(
        context: dg.AssetExecutionContext, config: LabelSettings, workspace: WorkspaceResource, judge: PolicyResource
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            shard = _shard(context, opened)
            source, _ = Catalog(opened.sources).partitions()[shard.partition]
            said = read_verifications(opened.tables, [source])
            asked = judge.for_rl(labels.ASSET, opened)
            stage = CheckedLabels(judge=asked, n_answers=config.n_answers, stop_early=config.stop_early, said=said)
            return _materialized(shard, stage)

    @asset(
        pass_rates.ASSET,
        [dg.AssetKey([candidates.ASSET]), dg.AssetKey([labels.ASSET])],
        {"llm"},
        "How often the model to be trained is right. What it nearly always solves teaches nothing and goes.",
    )
    def rates(
        context: dg.AssetExecutionContext,
        config: PassRateSettings,
        workspace: WorkspaceResource,
        student: PolicyResource,
        judge: PolicyResource,
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            stage = PassRates(
                student=student.for_rl(pass_rates.ASSET, opened),
                judge=judge.for_judging(pass_rates.ASSET, opened),
                **config.model_dump(),
            )
            return _materialized(_shard(context, opened), stage)

    @asset(
        necessity.ASSET,
        [dg.AssetKey([candidates.ASSET]), dg.AssetKey([pass_rates.ASSET])],
        {"llm", "python"},
        "Accuracy with tools forced and forbidden: a prior, no truth. Training estimates it again.",
    )
    def tool_necessity(
        context: dg.AssetExecutionContext,
        config: NecessitySettings,
        workspace: WorkspaceResource,
        student: PolicyResource,
        judge: PolicyResource,
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            stage = ToolNecessities(
                student=student.for_rl(necessity.ASSET, opened),
                judge=judge.for_judging(necessity.ASSET, opened),
                sandboxes=Sandboxes(opened.images, opened.ledger),
                **config.model_dump(),
            )
            return _materialized(_shard(context, opened), stage)

    @asset(
        suitability.VOTES,
        [dg.AssetKey([candidates.ASSET])],
        {"llm"},
        "Whether drawing would help with a problem in words: eight votes each.",
    )
    def suitability_votes(
        context: dg.AssetExecutionContext,
        config: SuitabilitySettings,
        workspace: WorkspaceResource,
        judge: PolicyResource,
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            stage = Suitability(judge=judge.for_rl(suitability.VOTES, opened), **config.model_dump())
            return _materialized(_shard(context, opened), stage)

    @asset(
        suitability.LABELS,
        [dg.AssetKey([suitability.VOTES])],
        set(),
        "What the votes come to. A tie is a value of its own; a setting says what it is taken for.",
    )
    def suitability_labels(
        context: dg.AssetExecutionContext, config: TieSettings, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        ties: Mapping[str, Tie] = {"yes": "yes", "no": "no", "reject": "reject"}
        with workspace.open() as opened:
            return _materialized(_shard(context, opened), SuitabilityLabels(tie=ties[config.tie]))

    return [rl_candidates, checked_labels, rates, tool_necessity, suitability_votes, suitability_labels]


def rl_dataset_asset(partitions: dg.StaticPartitionsDefinition) -> dg.AssetsDefinition:
    """The asset that ships the RL rows of all shards, and people's."""
    above = [pass_rates.ASSET, necessity.ASSET, suitability.LABELS, ACCEPTED.asset[0]]

    @dg.asset(
        key=RL_DATASET,
        deps=[dg.AssetKey([name]) for name in above],
        group_name="datasets",
        kinds={"huggingface", "parquet"},
        owners=["team:data"],
        check_specs=[dg.AssetCheckSpec(name=NAME, asset=RL_DATASET, blocking=True)],
        description="datasets/rl/prompts/: questions worth a rollout, with graders, rates, labels and a card.",
    )
    def rl_dataset(
        context: dg.AssetExecutionContext, config: MixSettings, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        mix = Mix(quotas=config.quotas, n_rows=config.n_rows, validation_share=config.validation_share)
        with workspace.open() as opened:
            keys = partitions.get_partition_keys()
            report = materialize_rows(opened, keys, read_accepted(opened), mix, Screening(opened))
            shipped = ship_rows(opened, keys, report, mix)
            context.log.info("%s: %d rows, %d bytes", shipped.folder, shipped.n_rows, shipped.n_bytes)
            rows = opened.tables.read(KEY, RLRow)
            samples = [row.sample for row in rows]
            return dg.MaterializeResult(
                metadata={
                    **stage_metadata(report, path=str(shipped.folder)),
                    **rejects_metadata(opened.tables.read_rejects(KEY)),
                    **dataset_page(rows),
                    **samples_examples(samples, opened.images),
                    "preview": samples_preview(samples, opened.images),
                    "megabytes": dg.MetadataValue.float(round(shipped.n_bytes / 1e6, 1)),
                },
                check_results=[check_conservation(opened.tables, KEY, n_in=report.n_in)],
            )

    return rl_dataset


def _shard(context: dg.AssetExecutionContext, workspace: Workspace) -> Shard:
    return Shard(workspace, context.partition_key, progress_lines(context))


def _materialized(shard: Shard, stage: Stage[Any, Any]) -> dg.MaterializeResult:
    report = shard.materialize(stage)
    tables, key = shard.workspace.tables, shard.key(stage.asset)
    return dg.MaterializeResult(
        metadata={
            **stage_metadata(report, path=str(tables.path(key))),
            **rejects_metadata(tables.read_rejects(key)),
            **stage_page(shard, stage.asset),
        },
        check_results=[check_conservation(tables, key, n_in=len(stage.rows(shard)))],
    )
