"""The assets of RL data: candidates, checked labels, pass rates, tool necessity, suitability."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

import dagster as dg
import pydantic

from darkroom.assets.graph.families import ensure_samples
from darkroom.assets.graph.partitions import SHARDS_OF
from darkroom.assets.graph.stage_assets import SPECS, StageInputs, stage_asset, stage_result
from darkroom.assets.pages.metadata import rl_stage_metadata
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.rl.labels import CheckedLabels, read_verifications
from darkroom.pipelines.rl.necessity import ToolNecessities
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability, SuitabilityLabels
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources.catalog import source_of
from darkroom.pipelines.storage.stage_runs import StageReport

GROUP = "rl"
_KINDS = (Candidates, CheckedLabels, PassRates, ToolNecessities, Suitability, SuitabilityLabels)
RL_STAGES: Mapping[str, Any] = {kind.asset: kind for kind in _KINDS}
"""By the names of their assets, in order."""


def rl_assets() -> list[dg.AssetsDefinition]:
    return [_asset(kind) for kind in RL_STAGES.values()]


def rl_stage(work: StageInputs, asset: str) -> Any:
    """A stage with its inputs. Its first role is asked; a second one grades the answers (embedded: none)."""
    kind, roles, policies, workspace = RL_STAGES[asset], SPECS[asset].roles, work.policies, work.workspace
    chosen: dict[str, Any] = {role: policies(role).for_rl(asset, workspace) for role in roles[:1]}
    chosen |= {role: policies(role).for_judging(asset, workspace) for role in roles[1:]}
    return kind(**chosen, **_inputs(work, _shard(work), kind), **work.settings.model_dump())


def work_on_rl(work: StageInputs, asset: str) -> StageReport:
    """One RL stage. Raises what ``Shard.materialize`` raises."""
    return _shard(work).materialize(rl_stage(work, asset))


def rl_settings(asset: str) -> type[dg.Config]:
    """The fields of a stage that the launchpad sets, with the stage's own defaults."""
    kind, spec = RL_STAGES[asset], SPECS[asset]
    defaults = {field.name: field.default for field in fields(kind)}
    settings: dict[str, Any] = {
        name: (type(defaults[name]), pydantic.Field(default=defaults[name], **bounds))
        for name, bounds in spec.settings.items()
    }
    return pydantic.create_model(f"{kind.__name__}Settings", __base__=dg.Config, __doc__=spec.about, **settings)


def _asset(kind: Any) -> dg.AssetsDefinition:
    spec = SPECS[kind.asset]

    def perform(work: StageInputs) -> dg.MaterializeResult:
        if kind is Candidates:
            ensure_samples(work)
        stage, shard = rl_stage(work, kind.asset), _shard(work)
        report, n_in = shard.materialize(stage), len(stage.rows(shard))
        return stage_result(work.workspace.tables, report, n_in=n_in, details=rl_stage_metadata(shard, kind.asset))

    return stage_asset(
        dg.AssetKey([kind.asset]),
        spec,
        perform,
        record=kind.kind,
        deps=[dg.AssetKey([name]) for name in spec.deps],
        group=GROUP,
        partitions=SHARDS_OF["rl"],
        settings=rl_settings(kind.asset),
    )


def _shard(work: StageInputs) -> Shard:
    return Shard(work.workspace, work.partition, work.progress)


def _inputs(work: StageInputs, shard: Shard, kind: Any) -> dict[str, Any]:
    workspace = work.workspace
    if kind is CheckedLabels:
        return {"said": read_verifications(workspace.tables, [source_of(shard.partition)])}
    if kind is ToolNecessities:
        return {"sandboxes": Sandboxes(workspace.images, workspace.ledger)}
    if kind is not Candidates:
        return {}
    screening = Screening(workspace)

    @cache
    def errors() -> Mapping[str, RowError]:
        return screening.screen_samples(f"{Candidates.asset}-{shard.partition}", list(shard.samples().values()))

    return {"screening": screening, "errors": errors}
