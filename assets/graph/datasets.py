"""The datasets that ship, SFT and RL, and the experts' reviews that decide what ships."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, cast

import dagster as dg

from darkroom.annotation.label_studio.server import connect
from darkroom.annotation.queues.base import read_verdicts
from darkroom.annotation.queues.table_queues import REVIEW, ReviewQueue
from darkroom.annotation.rounds.accepted_source import read_accepted
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.sync import pulled_since
from darkroom.annotation.rounds.tables import ACCEPTED
from darkroom.assets.graph.families import SAMPLES as SAMPLES_KEY, stage_key
from darkroom.assets.graph.partitions import SHIPS
from darkroom.assets.graph.resources import DatasetSettings, MixSettings, ReviewSettings, WorkspaceResource
from darkroom.assets.graph.stage_assets import OWNERS, ROWS_CONSERVED, Decorator, stage_result
from darkroom.assets.pages import metadata as pages
from darkroom.assets.pages.declared_metadata import dataset_columns, table_columns
from darkroom.pipelines.generation.recipes import Recipe
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.publishing.dataset_reader import origins_in
from darkroom.pipelines.publishing.dataset_writer import Unlicensed
from darkroom.pipelines.publishing.judge_stats import REVIEWS, acceptance, read_reviews
from darkroom.pipelines.publishing.parquet_shards import Shipped
from darkroom.pipelines.publishing.rl_dataset import KEY, RlDataset
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.records import Review, RLRow, Sample, Trajectory
from darkroom.pipelines.rl import necessity, pass_rates, suitability
from darkroom.pipelines.rl.candidates import Candidates
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.errors import UserError

GROUP = "datasets"
SFT_DATASET, RL_DATASET = dg.AssetKey("sft_dataset"), dg.AssetKey(list(KEY.asset))
EXPERT_REVIEWS = dg.AssetKey(list(REVIEWS))
_RL_UPSTREAM = (pass_rates.ASSET, necessity.ASSET, suitability.LABELS, ACCEPTED.asset[0])


def _dataset(key: dg.AssetKey, deps: Sequence[dg.AssetKey], description: str) -> Decorator:
    checks = [dg.AssetCheckSpec(name=ROWS_CONSERVED, asset=key, blocking=True)]
    declared: dict[str, Any] = {"group_name": GROUP, "kinds": {"huggingface", "parquet"}, "description": description}
    declared |= {"owners": OWNERS, "freshness_policy": SHIPS}
    return cast(Decorator, dg.asset(key=key, deps=deps, check_specs=checks, **declared))


def sft_dataset_asset(recipes: Sequence[Recipe]) -> dg.AssetsDefinition:
    """The asset that ships all families."""

    @_dataset(
        SFT_DATASET,
        [*(stage_key(recipe.family, "trajectories") for recipe in recipes), EXPERT_REVIEWS],
        "datasets/sft/<family>/: parquet with embedded images and a card, readable without Darkroom.",
    )
    def sft_dataset(
        context: dg.AssetExecutionContext, config: DatasetSettings, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        counts = Counter({"rows_in": 0, "rows_out": 0, "rejected": 0, "quarantined": 0})
        metadata: dict[str, dg.MetadataValue] = {}
        with workspace.open() as opened:
            tables = opened.tables
            datasets = sft_datasets(opened, recipes, config)
            unlicensed: list[Unlicensed] = []
            for dataset in datasets:
                try:
                    report, shipped = dataset.publish()
                except Unlicensed as error:  # the other families ship
                    unlicensed.append(error)
                    continue
                context.log.info("%s: %d rows, %d bytes", shipped.folder, shipped.n_rows, shipped.n_bytes)
                family, shards = dataset.recipe.family, dataset.partitions
                keys = [TableKey((family, "trajectories"), shard) for shard in shards]
                counts.update(rows_in=sum(tables.n_rows(key) for key in tables.existing(keys)), rows_out=shipped.n_rows)
                counts.update(rejected=report.n_rejected, quarantined=report.n_quarantined)
                metadata |= _shipped_metadata(opened, family, shipped, shards)
            if unlicensed:
                raise UserError("; ".join(map(str, unlicensed)))
            metadata |= pages.rejects_metadata(*(tables.stream_rejects(dataset.key) for dataset in datasets))
        families = dict.fromkeys([stage_key(recipe.family, "trajectories") for recipe in recipes], Trajectory)
        metadata |= dataset_columns("trajectories", {**families, SAMPLES_KEY: Sample})
        is_conserved = counts["rows_in"] == counts["rows_out"] + counts["rejected"] + counts["quarantined"]
        return dg.MaterializeResult(
            metadata={"dagster/row_count": counts["rows_out"], **counts, **metadata},
            check_results=[dg.AssetCheckResult(check_name=ROWS_CONSERVED, passed=is_conserved, metadata=counts)],
        )

    return sft_dataset


def sft_datasets(workspace: Workspace, recipes: Sequence[Recipe], config: DatasetSettings) -> list[SftDataset]:
    """The datasets of the families, with their tables made and their splits, which are those of all families."""
    quotas, parts = config.quotas_of(recipes), config.model_dump(include={"validation_share", "n_replayed"})
    parts["partitions"] = drafted_partitions(workspace.tables, recipes, _shards(workspace))
    parts["screening"] = Screening(workspace)
    datasets = [SftDataset(workspace, recipe, n_rows=quotas.get(recipe.family), **parts) for recipe in recipes]
    for dataset in datasets:
        dataset.make_table()
    for dataset in datasets:
        dataset.splits = datasets[0].splits
    return datasets


def rl_dataset_asset() -> dg.AssetsDefinition:
    """The asset that ships the RL rows of all shards and the human annotations."""

    @_dataset(
        RL_DATASET,
        [dg.AssetKey([name]) for name in _RL_UPSTREAM],
        "datasets/rl/prompts/: RL questions with graders, pass rates, labels and a card.",
    )
    def rl_dataset(
        context: dg.AssetExecutionContext, config: MixSettings, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        with workspace.open() as opened:
            people = read_accepted(opened)
            of_people = (people.samples, Screening(opened), people.annotators, people.from_drafts)
            dataset = RlDataset(opened, _shards(opened), *of_people, **config.model_dump())
            report, shipped = dataset.publish()
            context.log.info("%s: %d rows, %d bytes", shipped.folder, shipped.n_rows, shipped.n_bytes)
            details: dict[str, Any] = {
                **pages.rl_dataset_metadata(opened.tables.stream(KEY, RLRow)),
                **pages.samples_pages((row.sample for row in opened.tables.stream(KEY, RLRow)), opened.images),
                **pages.texts(origins_in([shipped.folder])),
                "megabytes": _megabytes(shipped),
                **dataset_columns("prompts", {SAMPLES_KEY: Sample, dg.AssetKey(Candidates.asset): Candidates.kind}),
            }
            return stage_result(opened.tables, report, n_in=report.n_in, details=details, path=str(shipped.folder))

    return rl_dataset


def expert_reviews_asset(recipes: Sequence[Recipe]) -> dg.AssetsDefinition:
    """The asset that sends trajectories to experts and reads their verdicts."""

    @dg.asset(
        key=EXPERT_REVIEWS,
        deps=[stage_key(recipe.family, "trajectories") for recipe in recipes],
        group_name=GROUP,
        kinds={"parquet"},
        owners=OWNERS,
        metadata=table_columns(Review),
        description="Experts' verdicts on a seeded sample of each family. Rows that they reject do not ship.",
    )
    def expert_reviews(
        context: dg.AssetExecutionContext, config: ReviewSettings, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        with workspace.open() as opened, Journal(opened.annotation) as journal:
            queue = ReviewQueue(opened, Campaign.load(opened.annotation), journal)
            before = journal.last_version
            with connect(opened) as studio:
                n_tasks = queue.sync(studio, recipes, n_rows=config.n_rows)
            reports = queue.materialize(recipes)
            context.log.info("received: %s; tasks sent: %d", pulled_since(journal, before), n_tasks)
            n_waiting = read_verdicts(journal, REVIEW).n_waiting
            proportions = {family: acceptance(read_reviews(opened.tables, family)) for family in reports}
        head = ("family", "reviewed", "accepted", "share")
        rows = [(family, accepted.of, accepted.n, str(accepted)) for family, accepted in proportions.items()]
        shares = pages.table(head, rows) if rows else dg.MetadataValue.text("no family")
        n_rows = sum(report.n_out for report in reports.values())
        return dg.MaterializeResult(metadata={"dagster/row_count": n_rows, "waiting": n_waiting, "acceptance": shares})

    return expert_reviews


def drafted_partitions(tables: Tables, recipes: Sequence[Recipe], partitions: Sequence[str]) -> list[str]:
    """The partitions in which a family has trajectories: samples for RL alone do not change SFT's splits."""
    keys = [TableKey((recipe.family, "trajectories"), partition) for recipe in recipes for partition in partitions]
    drafted = {key.partition for key in tables.existing(keys)}
    return [partition for partition in partitions if partition in drafted]


def _shards(workspace: Workspace) -> list[str]:
    return list(Catalog(workspace.sources).partitions())


def _shipped_metadata(
    workspace: Workspace, family: str, shipped: Shipped, partitions: Sequence[str]
) -> dict[str, dg.MetadataValue]:
    tables = workspace.tables
    key = TableKey(("sft_dataset",), family)
    previewed = list(islice(tables.stream(key, Trajectory), pages.N_PREVIEWED))
    sample_ids = {row.sample_id for row in previewed}
    keys = [TableKey(SAMPLES, partition) for partition in partitions if previewed]
    pairs = (row for key in tables.existing(keys) for row in tables.columns(key, "sample_id", "question"))
    questions = {sample_id: question for sample_id, question in pairs if sample_id in sample_ids}
    metadata = {"folder": dg.MetadataValue.path(str(shipped.folder)), "megabytes": _megabytes(shipped)}
    metadata |= {"rows": dg.MetadataValue.int(shipped.n_rows), "images": dg.MetadataValue.int(shipped.n_images)}
    if previewed:
        metadata["preview"] = pages.trajectories_preview(previewed, questions, workspace.images)
    metadata |= pages.texts(origins_in([shipped.folder]))
    return {f"{family}_{name}": value for name, value in metadata.items()}


def _megabytes(shipped: Shipped) -> dg.MetadataValue:
    return dg.MetadataValue.float(round(shipped.n_bytes / 1e6, 1))
