"""The assets of RL data: candidates, checked labels, pass rates, tool necessity, suitability."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import dagster as dg
import pydantic

from assets.graph.families import ensure_samples
from assets.graph.partitions import SHARDS_OF
from assets.graph.stage_assets import SPECS, StageRun, StageSpec, progress_lines, stage_asset, stage_result
from assets.pages.metadata import rl_stage_metadata
from pipelines.generation.sandbox_sessions import Sandboxes
from pipelines.generation.stage import Shard
from pipelines.records.reject_reasons import RowError
from pipelines.rl.candidates import Candidates
from pipelines.rl.labels import CheckedLabels, read_verifications
from pipelines.rl.necessity import ToolNecessities
from pipelines.rl.pass_rates import PassRates
from pipelines.rl.suitability import Suitability, SuitabilityLabels
from pipelines.selection.screening import Screening
from pipelines.sources.catalog import source_of

GROUP = "rl"


_STAGES: tuple[Any, ...] = (Candidates, CheckedLabels, PassRates, ToolNecessities, Suitability, SuitabilityLabels)


def rl_assets() -> list[dg.AssetsDefinition]:
    """The assets of the group ``rl``."""
    return [_asset(kind) for kind in _STAGES]


def _asset(kind: Any) -> dg.AssetsDefinition:
    spec = SPECS[kind.asset]

    def perform(run: StageRun) -> dg.MaterializeResult:
        if kind is Candidates:
            ensure_samples(run)
        shard = Shard(run.workspace, run.partition, progress_lines(run.context))
        policies = _policies(run, kind.asset, spec.roles)
        stage = kind(**policies, **_inputs(run, shard, kind), **run.settings.model_dump())
        report, n_in = shard.materialize(stage), len(stage.rows(shard))
        return stage_result(run.workspace.tables, report, n_in=n_in, details=rl_stage_metadata(shard, kind.asset))

    return stage_asset(
        dg.AssetKey([kind.asset]),
        spec,
        perform,
        record=kind.kind,
        deps=[dg.AssetKey([name]) for name in spec.deps],
        group=GROUP,
        partitions=SHARDS_OF["rl"],
        settings=_settings(kind, spec),
    )


def _inputs(run: StageRun, shard: Shard, kind: Any) -> dict[str, Any]:
    """What a stage takes besides its policies and settings."""
    workspace = run.workspace
    if kind is CheckedLabels:
        return {"said": read_verifications(workspace.tables, [source_of(shard.partition)])}
    if kind is ToolNecessities:
        return {"sandboxes": Sandboxes(workspace.images, workspace.ledger)}
    if kind is not Candidates:
        return {}
    screening = Screening(workspace)

    @cache
    def errors() -> Mapping[str, RowError]:
        name = f"{Candidates.asset}-{shard.partition}"
        return screening.screen_samples(name, list(shard.samples().values()))

    return {"screening": screening, "errors": errors}


def _policies(run: StageRun, asset: str, roles: Sequence[str]) -> dict[str, Any]:
    """The first role is asked; a second one grades what it answers, for which the embedded judge is none."""
    asked = {role: run.policy(role).for_rl(asset, run.workspace) for role in roles[:1]}
    return asked | {role: run.policy(role).for_judging(asset, run.workspace) for role in roles[1:]}


def _settings(kind: Any, spec: StageSpec) -> type[dg.Config]:
    """The fields of a stage that the launchpad sets, with the stage's own defaults."""
    defaults = {field.name: field.default for field in fields(kind)}
    settings: dict[str, Any] = {
        name: (type(defaults[name]), pydantic.Field(default=defaults[name], **shown))
        for name, shown in spec.settings.items()
    }
    return pydantic.create_model(f"{kind.__name__}Settings", __base__=dg.Config, __doc__=spec.about, **settings)
