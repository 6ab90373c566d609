"""The samples of every source, one partition per shard."""

import dagster as dg

from assets.conservation import check_conservation, conservation_spec
from assets.previews import rejects_metadata, samples_examples, samples_preview, stage_metadata
from assets.resources import WorkspaceResource
from pipelines import engine
from pipelines.records import Sample
from pipelines.sources import Catalog
from pipelines.tables import TableKey

SAMPLES = dg.AssetKey(list(engine.SAMPLES))


def samples_asset(partitions: dg.PartitionsDefinition) -> dg.AssetsDefinition:
    """The asset that takes sources in."""

    @dg.asset(
        key=SAMPLES,
        group_name="source",
        partitions_def=partitions,
        kinds={"parquet", "huggingface"},
        owners=["team:data"],
        check_specs=[conservation_spec(SAMPLES)],
        description="Questions about images with what is known to be true. Damaged and duplicate rows are set aside.",
    )
    def samples(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> dg.MaterializeResult:
        with workspace.open() as opened:
            partition = context.partition_key
            catalog = Catalog(opened.sources)
            source, shard = catalog.partitions()[partition]
            report = engine.intake(opened, catalog.open(source), shard, partition)
            key = TableKey(engine.SAMPLES, partition)
            rows, rejects = opened.tables.read(key, Sample), opened.tables.read_rejects(key)
            return dg.MaterializeResult(
                metadata={
                    **stage_metadata(report, path=str(opened.tables.path(key))),
                    **rejects_metadata(rejects),
                    **samples_examples(rows, opened.images),
                    "preview": samples_preview(rows, opened.images),
                },
                check_results=[check_conservation(opened.tables, key, n_in=report.n_in)],
            )

    return samples
