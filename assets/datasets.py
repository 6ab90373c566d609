"""What ships: every family's trajectories as Hugging Face dataset folders."""

from collections.abc import Sequence

import dagster as dg
from pydantic import Field

from assets.conservation import NAME
from assets.families import stage_key
from assets.previews import trajectories_preview
from assets.resources import WorkspaceResource
from pipelines.engine import SAMPLES
from pipelines.publish import publish
from pipelines.recipes import Recipe, quotas
from pipelines.records import Sample, Trajectory
from pipelines.reviews import ASSET as REVIEWS
from pipelines.screening import Screening
from pipelines.tables import TableKey, TableMissing, Tables
from pipelines.workspace import Workspace

SFT_DATASET = dg.AssetKey("sft_dataset")


class DatasetSettings(dg.Config):
    """What can be set for one run: how much of which family ships."""

    n_rows: int | None = Field(
        default=None, description="Rows in all, in the published mixture (Thyme App. B); null: everything accepted."
    )
    quotas: dict[str, int] = Field(default={}, description="Rows by family; comes before the mixture.")
    validation_share: float = Field(
        default=0.05, ge=0, le=1, description="Share of the groups of images that is set aside for validation."
    )

    n_replayed: int | None = Field(
        default=3, description="Rows of every family whose programs are executed again for the card; null: all."
    )

    def quotas_of(self, recipes: Sequence[Recipe]) -> dict[str, int]:
        """Rows by family; a family that is not in it ships all that was accepted."""
        return quotas(recipes, n_rows=self.n_rows) | self.quotas


def sft_dataset_asset(recipes: Sequence[Recipe], partitions: dg.StaticPartitionsDefinition) -> dg.AssetsDefinition:
    """The asset that ships all families."""

    @dg.asset(
        key=SFT_DATASET,
        deps=[*(stage_key(recipe.family, "trajectories") for recipe in recipes), dg.AssetKey(list(REVIEWS))],
        group_name="datasets",
        kinds={"huggingface", "parquet"},
        owners=["team:data"],
        check_specs=[dg.AssetCheckSpec(name=NAME, asset=SFT_DATASET, blocking=True)],
        description="datasets/sft/<family>/: parquet with embedded images and a card, readable without Darkroom.",
    )
    def sft_dataset(
        context: dg.AssetExecutionContext, config: DatasetSettings, workspace: WorkspaceResource
    ) -> dg.MaterializeResult:
        n_in = n_out = n_taken_out = 0
        by_family = config.quotas_of(recipes)
        metadata: dict[str, dg.MetadataValue] = {}
        with workspace.open() as opened:
            keys, screening = worked_on(opened.tables, recipes, partitions.get_partition_keys()), Screening(opened)
            for recipe in recipes:
                report, shipped = publish(
                    opened,
                    recipe,
                    keys,
                    n_rows=by_family.get(recipe.family),
                    validation_share=config.validation_share,
                    n_replayed=config.n_replayed,
                    screening=screening,
                )
                context.log.info("%s: %d rows, %d bytes", shipped.folder, shipped.n_rows, shipped.n_bytes)
                n_in += _rows_kept(opened.tables, recipe.family, keys)
                n_out += shipped.n_rows
                n_taken_out += report.n_rejected
                metadata[f"{recipe.family}_folder"] = dg.MetadataValue.path(str(shipped.folder))
                metadata[f"{recipe.family}_rows"] = dg.MetadataValue.int(shipped.n_rows)
                metadata[f"{recipe.family}_images"] = dg.MetadataValue.int(shipped.n_images)
                metadata[f"{recipe.family}_megabytes"] = dg.MetadataValue.float(round(shipped.n_bytes / 1e6, 1))
                metadata[f"{recipe.family}_preview"] = _preview(opened, recipe.family, keys)
        conserved = n_in == n_out + n_taken_out
        facts = {"rows_in": n_in, "rows_out": n_out, "taken_out": n_taken_out}
        return dg.MaterializeResult(
            metadata={"dagster/row_count": n_out, **metadata},
            check_results=[dg.AssetCheckResult(check_name=NAME, passed=conserved, metadata=facts)],
        )

    return sft_dataset


def worked_on(tables: Tables, recipes: Sequence[Recipe], partitions: Sequence[str]) -> list[str]:
    """The partitions in which any family has trajectories: samples for RL alone say nothing about SFT's splits."""
    return [
        partition
        for partition in partitions
        if any(tables.exists(TableKey((recipe.family, "trajectories"), partition)) for recipe in recipes)
    ]


def _rows_kept(tables: Tables, family: str, partitions: Sequence[str]) -> int:
    keys = [TableKey((family, "trajectories"), partition) for partition in partitions]
    return sum(tables.n_rows(key) for key in keys if tables.exists(key))


def _preview(opened: Workspace, family: str, partitions: Sequence[str]) -> dg.MetadataValue:
    trajectories = opened.tables.read(TableKey(("sft_dataset",), family), Trajectory)
    questions: dict[str, str] = {}
    for partition in partitions:
        try:
            rows = opened.tables.read(TableKey(SAMPLES, partition), Sample)
        except TableMissing:
            continue
        questions |= {sample.sample_id: sample.question for sample in rows}
    return trajectories_preview(trajectories, questions, opened.images)
