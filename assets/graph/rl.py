"""The assets of RL data: candidates, checked labels, pass rates, tool necessity, suitability."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import dagster as dg

from assets.graph.families import SAMPLES
from assets.graph.resources import (
    CandidateSettings,
    LabelSettings,
    NecessitySettings,
    PassRateSettings,
    SuitabilitySettings,
    TieSettings,
)
from assets.graph.stage_assets import StageRun, StageSpec, progress_lines, stage_asset, stage_result
from assets.pages.metadata import rl_stage_metadata
from pipelines.generation.sandbox_sessions import Sandboxes
from pipelines.generation.stage import Shard, Stage
from pipelines.records.reject_reasons import RowError
from pipelines.rl import candidates, labels, necessity, pass_rates, suitability
from pipelines.rl.candidates import Candidates
from pipelines.rl.labels import CheckedLabels, read_verifications
from pipelines.rl.necessity import ToolNecessities
from pipelines.rl.pass_rates import PassRates
from pipelines.rl.suitability import Suitability, SuitabilityLabels
from pipelines.selection.screening import Screening
from pipelines.sources.catalog import source_of

GROUP = "rl"


def _candidates(run: StageRun, shard: Shard) -> Candidates:
    screening = Screening(run.workspace)

    @cache
    def errors() -> Mapping[str, RowError]:
        name = f"{candidates.ASSET}-{shard.partition}"
        return screening.screen_samples(name, list(shard.samples().values())).errors

    judge = run.policy("judge").for_rl(candidates.ASSET, run.workspace)
    return Candidates(judge=judge, n_votes=run.settings.n_votes, screening=screening, errors=errors)


def _checked_labels(run: StageRun, shard: Shard) -> CheckedLabels:
    verifications = read_verifications(run.workspace.tables, [source_of(shard.partition)])
    judge = run.policy("judge").for_rl(labels.ASSET, run.workspace)
    return CheckedLabels(judge=judge, said=verifications, **run.settings.model_dump())


def _pass_rates(run: StageRun, shard: Shard) -> PassRates:
    return PassRates(
        student=run.policy("student").for_rl(pass_rates.ASSET, run.workspace),
        judge=run.policy("judge").for_judging(pass_rates.ASSET, run.workspace),
        **run.settings.model_dump(),
    )


def _tool_necessity(run: StageRun, shard: Shard) -> ToolNecessities:
    return ToolNecessities(
        student=run.policy("student").for_rl(necessity.ASSET, run.workspace),
        judge=run.policy("judge").for_judging(necessity.ASSET, run.workspace),
        sandboxes=Sandboxes(run.workspace.images, run.workspace.ledger),
        **run.settings.model_dump(),
    )


def _suitability_votes(run: StageRun, shard: Shard) -> Suitability:
    judge = run.policy("judge").for_rl(suitability.VOTES, run.workspace)
    return Suitability(judge=judge, **run.settings.model_dump())


def _suitability_labels(run: StageRun, shard: Shard) -> SuitabilityLabels:
    return SuitabilityLabels(tie=run.settings.tie)


class _RlStage(NamedTuple):
    name: str
    build: Callable[[StageRun, Shard], Stage[Any, Any, Any]]
    upstream: tuple[str, ...]
    spec: StageSpec


_LLM = ("llm", "parquet")
_STAGES = (
    _RlStage(
        candidates.ASSET,
        _candidates,
        (),
        StageSpec(
            "Samples that may become RL prompts: gradable answers, question and image match, no facts to look up.",
            _LLM,
            CandidateSettings,
            ("judge",),
        ),
    ),
    _RlStage(
        labels.ASSET,
        _checked_labels,
        (candidates.ASSET,),
        StageSpec(
            "Candidates whose label a judge's own answers or a person confirm. Disputed labels wait for a person.",
            _LLM,
            LabelSettings,
            ("judge",),
        ),
    ),
    _RlStage(
        pass_rates.ASSET,
        _pass_rates,
        (candidates.ASSET, labels.ASSET),
        StageSpec(
            "Pass rate of the model to be trained. Rows that it nearly always solves are rejected.",
            _LLM,
            PassRateSettings,
            ("student", "judge"),
        ),
    ),
    _RlStage(
        necessity.ASSET,
        _tool_necessity,
        (candidates.ASSET, pass_rates.ASSET),
        StageSpec(
            "Accuracy with tools forced and forbidden: a prior that training estimates again.",
            ("llm", "python", "parquet"),
            NecessitySettings,
            ("student", "judge"),
        ),
    ),
    _RlStage(
        suitability.VOTES,
        _suitability_votes,
        (candidates.ASSET,),
        StageSpec(
            "Whether a drawing would help with a text problem: eight votes each.", _LLM, SuitabilitySettings, ("judge",)
        ),
    ),
    _RlStage(
        suitability.LABELS,
        _suitability_labels,
        (suitability.VOTES,),
        StageSpec(
            "The majority of the votes. A tie is a value of its own; a setting decides how it counts.",
            settings=TieSettings,
        ),
    ),
)


def rl_assets(partitions: dg.StaticPartitionsDefinition) -> list[dg.AssetsDefinition]:
    """The assets of the group ``rl``."""
    return [_asset(stage, partitions) for stage in _STAGES]


def _asset(description: _RlStage, partitions: dg.StaticPartitionsDefinition) -> dg.AssetsDefinition:
    def perform(run: StageRun) -> dg.MaterializeResult:
        shard = Shard(run.workspace, run.partition, progress_lines(run.context))
        stage = description.build(run, shard)
        report, n_in = shard.materialize(stage), len(stage.rows(shard))
        return stage_result(run.workspace.tables, report, n_in=n_in, details=rl_stage_metadata(shard, stage.asset))

    return stage_asset(
        dg.AssetKey([description.name]),
        description.spec,
        perform,
        deps=[dg.AssetKey([name]) for name in description.upstream] or [SAMPLES],
        group=GROUP,
        partitions=partitions,
    )
