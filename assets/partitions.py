"""Partitions: one per shard of a source (``demo-0000``). Never one per row."""

import dagster as dg

from pipelines.sources import Catalog
from pipelines.workspace import Workspace


def shard_partitions(workspace: Workspace) -> dg.StaticPartitionsDefinition:
    """Every shard of every source that the workspace knows. Reload the definitions after ``darkroom ingest``."""
    return dg.StaticPartitionsDefinition(list(Catalog(workspace.sources).partitions()))
