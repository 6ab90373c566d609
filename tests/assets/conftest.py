"""A workspace with one small source of a user's own, and a Dagster instance below it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage import sql

from darkroom.assets.definitions import definitions
from darkroom.assets.graph.partitions import SHARDS_OF, update_partitions
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import SmallSource

PARTITION = "signs-0000"
# Dagster reads its migrations anew whenever it opens a database
sql.ScriptDirectory = SimpleNamespace(from_config=cache(sql.ScriptDirectory.from_config))  # type: ignore[misc]


def add_signs(workspace: Workspace, source: SmallSource, folder: Path, *, n_shards: int = 1) -> Path:
    """The small source as a folder with a questions file, added to the catalog as ``signs``."""
    source.write(folder)
    config = SourceConfig(
        kind="jsonl",
        path=str(folder),
        questions=str(folder / "questions.jsonl"),
        columns=Columns(boxes="boxes", box_frame="corners"),
        n_shards=n_shards,
        license="CC0-1.0",
    )
    Catalog(workspace.sources).add("signs", config)
    return folder


@pytest.fixture
def signs(workspace: Workspace, small_source: SmallSource, tmp_path: Path) -> Path:
    return add_signs(workspace, small_source, tmp_path / "signs")


@pytest.fixture(scope="session")
def _tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dagster's databases with their tables: to make those takes half a second, to copy the files none."""
    folder = tmp_path_factory.mktemp("dagster")
    with dg.instance_for_test(temp_dir=str(folder)) as made:
        made.get_runs_count()
        made.get_dynamic_partitions("none")
        made.all_instigator_state()
    (folder / "dagster.yaml").unlink()
    return folder


OpenInstance = Callable[..., AbstractContextManager[dg.DagsterInstance]]


@pytest.fixture
def open_instance(_tables: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenInstance:
    """Opens an instance of Dagster with these settings, in a folder of its own."""

    @contextmanager
    def opened(**settings: Any) -> Iterator[dg.DagsterInstance]:
        folder = tmp_path_factory.mktemp("instance")
        shutil.copytree(_tables, folder, dirs_exist_ok=True)
        with dg.instance_for_test(temp_dir=str(folder), overrides=settings) as made:
            yield made

    return opened


@pytest.fixture
def instance(open_instance: OpenInstance) -> Iterator[dg.DagsterInstance]:
    with open_instance() as made:
        yield made


def graph() -> dg.Definitions:
    """The code location, loaded once for the settings of its environment: it takes a second."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("DARKROOM_")}
    return _graph(frozenset((settings | {"DARKROOM_HOME": ""}).items()))


@cache
def _graph(_settings: frozenset[tuple[str, str]]) -> dg.Definitions:
    return definitions()


def materialize_shard(
    instance: dg.DagsterInstance, job: str, partition: str = PARTITION, **how: Any
) -> dg.ExecuteInProcessResult:
    """Runs a job on a shard of the test's workspace, whatever its source is for."""
    with Workspace.from_environment() as workspace:
        update_partitions(workspace, instance, {use: [partition] for use in SHARDS_OF})
    return graph().resolve_job_def(job).execute_in_process(instance=instance, partition_key=partition, **how)
