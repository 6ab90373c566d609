"""A workspace with one small source of a user's own, and a Dagster instance below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from darkroom.assets.definitions import definitions
from darkroom.assets.graph.partitions import SHARDS_OF, update_partitions
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource

PARTITION = "signs-0000"


def add_signs(workspace: Workspace, source: SmallSource, folder: Path, *, n_shards: int = 1) -> Path:
    """The small source as a folder with a questions file, added to the catalog as ``signs``."""
    source.write(folder)
    config = SourceConfig(
        kind="jsonl",
        path=str(folder),
        questions=str(folder / "questions.jsonl"),
        columns=Columns(boxes="boxes", box_frame="corners"),
        n_shards=n_shards,
    )
    Catalog(workspace.sources).add("signs", config)
    return folder


@pytest.fixture
def signs(workspace: Workspace, small_source: SmallSource, tmp_path: Path) -> Path:
    return add_signs(workspace, small_source, tmp_path / "signs")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def materialize_shard(
    instance: dg.DagsterInstance, job: str, partition: str = PARTITION, **how: Any
) -> dg.ExecuteInProcessResult:
    """Runs a job on a shard of the test's workspace, whatever its source is for."""
    with Workspace.from_environment() as workspace:
        update_partitions(workspace, instance, {use: [partition] for use in SHARDS_OF})
    return definitions().resolve_job_def(job).execute_in_process(instance=instance, partition_key=partition, **how)
