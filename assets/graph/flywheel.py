"""The flywheel: a student writes on new questions, sandbox and checks keep rows, SFT on them gives the next student.

One partition per turn. Turn N writes on shard N-1 of the source ``DARKROOM_FLYWHEEL_SOURCE``, by the checkpoint of turn
N-1; the first turn's student is the configured one (``DARKROOM_STUDENT=local``). Turns follow one another; Dagster has
no dependency between the checkpoint of one partition and the rows of the next one: a turn without its student fails.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import dagster as dg

from darkroom.assets.clusters.programs import LauncherResource, launch
from darkroom.assets.graph.resources import PolicyResource, WorkspaceResource
from darkroom.assets.graph.stage_assets import OWNERS, ROWS_CONSERVED, Decorator, conservation_spec, progress_lines
from darkroom.assets.graph.training_config import SftConfig, sft_program
from darkroom.assets.pages.columns import table_columns
from darkroom.assets.pages.metadata import funnel as rows_left
from darkroom.assets.pages.metadata import rejects_metadata
from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.flywheel import TurnReport, write_turn
from darkroom.pipelines.generation.recipes import Recipe, load_recipes, without_hints
from darkroom.pipelines.models.policies import PolicyUnavailable
from darkroom.pipelines.publishing.turn_dataset import Keeps, TurnDataset
from darkroom.pipelines.records import Reject, Trajectory
from darkroom.pipelines.sources import SourceError
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.settings import EnvironmentSettings, setting
from darkroom.pipelines.storage.workspace import Workspace

GROUP = "flywheel"
PREFIX = "DARKROOM_FLYWHEEL_"
ROWS, DATASET, CHECKPOINT = (dg.AssetKey([GROUP, name]) for name in ("rows", "dataset", "checkpoint"))


class FlywheelResource(EnvironmentSettings, dg.ConfigurableResource):
    """Which questions the student writes on, and which of its rows are trained on."""

    source: str = setting("SOURCE", "demo", description="Source of the questions: turn N takes its N-th shard.")
    family: str = setting("FAMILY", "crop", description="Family of the trajectories, with its checks.")
    keeps: Keeps = setting(
        "KEEPS",
        "kept",
        description="Rows to train on: `kept` passed every check; `executed` and `unfiltered` are ablations.",
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings of ``DARKROOM_FLYWHEEL_…``. Raises ``PolicyUnavailable``, naming the variable that is wrong."""
        return cls.read(environment, PREFIX, error=PolicyUnavailable)

    @property
    def recipe(self) -> Recipe:
        """The family as the student meets it. Raises ``dg.Failure`` for an unknown one."""
        recipes = load_recipes()
        if self.family not in recipes:
            raise dg.Failure(f"{PREFIX}FAMILY is {self.family!r}; there are {', '.join(recipes)}")
        return without_hints(recipes[self.family])


def turn_partitions(workspace: Workspace, source: str) -> dg.StaticPartitionsDefinition:
    """A turn for each shard of the source; one where there is no such source."""
    n_shards = sum(name == source for name, _ in Catalog(workspace.sources).partitions().values())
    return dg.StaticPartitionsDefinition([f"turn-{number}" for number in range(1, max(n_shards, 1) + 1)])


def flywheel_assets(partitions: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
    """Rows, dataset and checkpoint of a turn."""

    def asset(**declared: Any) -> Decorator:
        decorator: Decorator = dg.asset(group_name=GROUP, owners=OWNERS, partitions_def=partitions, **declared)
        return decorator

    @asset(
        key=ROWS,
        kinds={"pytorch", "parquet"},
        check_specs=[conservation_spec(ROWS)],
        metadata=table_columns(Trajectory),
    )
    def rows(
        context: dg.AssetExecutionContext,
        workspace: WorkspaceResource,
        flywheel: FlywheelResource,
        student: PolicyResource,
        judge: PolicyResource,
    ) -> dg.MaterializeResult:
        """Trajectories of the turn's student on questions of its own, executed and checked as all rows are.

        The student reads no hint. Every turn and execution is on the ledger.
        """
        with workspace.open() as opened:
            recipe, writer = flywheel.recipe, student_of(opened, context.partition_key, student)
            report = write_turn(
                opened,
                recipe,
                _source(opened, flywheel.source),
                number_of(context.partition_key) - 1,
                context.partition_key,
                student=lambda: writer.for_recipe(recipe, opened),
                judge=judge.for_judging(recipe.family, opened),
                n_votes=judge.n_votes,
                progress=progress_lines(context),
            )
            return _rows_result(opened, Family(opened, recipe, context.partition_key), report, writer.model)

    @asset(key=DATASET, kinds={"huggingface", "parquet"}, deps=[ROWS])
    def dataset(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, flywheel: FlywheelResource
    ) -> dg.MaterializeResult:
        """datasets/flywheel/<turn>-kept/: the turn's rows that passed every check, as all datasets ship."""
        with workspace.open() as opened:
            report, shipped = _turn_dataset(opened, context.partition_key, flywheel).publish()
            folder = dg.MetadataValue.path(str(shipped.folder))
            counts = {"rows_in": report.n_in, "rejected": report.n_rejected, "images": shipped.n_images}
            return dg.MaterializeResult(metadata={"dagster/row_count": shipped.n_rows, "folder": folder, **counts})

    @asset(key=CHECKPOINT, kinds={"pytorch", "huggingface"}, deps=[DATASET])
    def checkpoint(
        context: dg.AssetExecutionContext,
        config: SftConfig,
        workspace: WorkspaceResource,
        flywheel: FlywheelResource,
        student: PolicyResource,
        launcher: LauncherResource,
    ) -> dg.MaterializeResult:
        """The student fine-tuned on its own rows of this turn: the next turn's student."""
        turn = context.partition_key
        with workspace.open() as opened:
            folder = opened.local_datasets("flywheel", _turn_dataset(opened, turn, flywheel).name)
            model, output = Path(student_of(opened, turn, student).model), checkpoint_of(opened, turn)
        if not folder.exists():
            raise dg.Failure(f"no row of {turn} ships ({folder}): see rejects_by_reason of flywheel/rows")
        return launch(context, sft_program([folder], model, output, config, tiny=False), launcher)

    return [rows, dataset, checkpoint]


def checkpoint_of(workspace: Workspace, turn: str) -> Path:
    """Where a turn's training writes."""
    return workspace.checkpoint(GROUP) / turn


def number_of(turn: str) -> int:
    """2 of ``turn-2``."""
    return int(turn.removeprefix("turn-"))


def student_of(workspace: Workspace, turn: str, configured: PolicyResource) -> PolicyResource:
    """Who writes in a turn. Raises ``dg.Failure`` where that is no checkpoint, or the turn before has none."""
    if configured.kind != "local":
        names = configured.variables("DARKROOM_STUDENT")
        raise dg.Failure(
            f"the student must be a checkpoint: set {names['kind']}=local and {names['model']} to its folder"
        )
    if (number := number_of(turn)) == 1:
        return configured
    before = f"turn-{number - 1}"
    folder = checkpoint_of(workspace, before)
    if not (folder / "config.json").exists():
        raise dg.Failure(f"{before} has no checkpoint yet: run the job {GROUP} for {before} first (darkroom ui, Jobs)")
    return configured.model_copy(update={"model": str(folder)})


def _source(workspace: Workspace, name: str) -> Any:
    try:
        return Catalog(workspace.sources).open(name)
    except SourceError as error:
        raise dg.Failure(f"{PREFIX}SOURCE: {error}") from error


def _turn_dataset(workspace: Workspace, turn: str, flywheel: FlywheelResource) -> TurnDataset:
    return TurnDataset(workspace, flywheel.recipe, [turn], keeps=flywheel.keeps)


def _rows_result(workspace: Workspace, family: Family, report: TurnReport, student: str) -> dg.MaterializeResult:
    tables, funnel = workspace.tables, report.funnel
    n_samples, n_kept = tables.n_rows(family.samples_key), funnel.n_accepted
    rejects: list[Reject] = tables.read(family.key("rejects"), Reject)
    counts = {"rows_in": n_samples, "rows_out": n_kept, "rejected_or_quarantined": len(rejects)}
    seconds = {} if report.seconds_per_row is None else {"seconds_per_accepted_row": round(report.seconds_per_row, 3)}
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": n_kept,
            "student": dg.MetadataValue.path(student),
            "drafted": report.n_drafted,
            "accepted": n_kept,
            "accepted_share": report.accepted_share,
            "tokens_per_accepted_row": funnel.tokens_per_row,
            **seconds,
            "funnel": rows_left({step.name: step.n_out for step in funnel.steps}),
            **rejects_metadata(rejects),
        },
        check_results=[
            dg.AssetCheckResult(check_name=ROWS_CONSERVED, passed=n_samples == n_kept + len(rejects), metadata=counts)
        ],
    )
