"""A cluster as a team has it, on this machine: Ray with a head and workers, PostgreSQL, an S3 server, an endpoint.

A source of shards is built on it by the command that users give. Each part can be killed and started again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import dagster as dg
import numpy as np
from PIL import Image

from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.sources.source_config import SourceConfig
from darkroom.pipelines.storage.workspace import Workspace
from tests.drafting import DECISION
from tests.e2e.team import ROOT, new_ledger, write_team_settings
from tests.mock_endpoint import MockEndpoint
from tests.object_store import ObjectStore, S3Server, running
from tests.postgres import Postgres, postgres_server
from tests.soak.ray_cluster import RayCluster, ray_cluster

SOURCE, FAMILY = "rows", "direct"


@dataclass(frozen=True)
class Load:
    """What is built, and how long the endpoint takes for a call."""

    n_shards: int
    n_rows: int
    """Of a shard."""
    seconds: float
    n_calls: int = 4
    """That a worker's policy has in flight at most, and its judge as many: few, so that the endpoint decides how long a
    shard takes."""


@dataclass(frozen=True)
class Site:
    """``settings``: the environment of commands; ``instance``: Dagster's history."""

    folder: Path
    endpoint: MockEndpoint
    database: Postgres
    store: ObjectStore
    ray: RayCluster
    settings: dict[str, str]
    instance: dg.DagsterInstance

    @property
    def said(self) -> str:
        """What the commands have printed."""
        return (self.folder / "log").read_text()

    @contextmanager
    def building(self) -> Iterator[subprocess.Popen[bytes]]:
        """`darkroom materialize --on` the cluster; killed at the end, if it has not ended."""
        with (self.folder / "log").open("ab") as log:
            command = subprocess.Popen(
                materialize("--on", self.ray.url), cwd=ROOT, env=self.settings, stdout=log, stderr=log
            )
        try:
            yield command
        finally:
            command.kill()
            command.wait()

    def runs(self) -> list[dg.RunRecord]:
        return list(self.instance.get_run_records(dg.RunsFilter(job_name="sft_trajectories")))


def materialize(*words: str) -> list[str]:
    """The command that builds the source."""
    return [str(Path(sys.executable).with_name("darkroom")), "materialize", SOURCE, "--family", FAMILY, *words]


@contextmanager
def cluster_site(folder: Path, load: Load, *, n_workers: int) -> Iterator[Site]:
    """Everything is up, nothing is built. Raises ``PostgresMissing``."""
    local = folder / "local"
    local.mkdir(parents=True)
    # as many again wait in Ray's queue, so that a worker that is free does not wait for Dagster's
    write_team_settings(local / "dagster", n_runs=2 * n_workers)
    write_rows(folder / SOURCE, load)
    with ExitStack() as stack:
        store = stack.enter_context(running(S3Server(folder / "store.jsonl")))
        stack.enter_context(patch.dict(os.environ, store.environment))
        database = stack.enter_context(postgres_server("dagster"))
        stack.enter_context(patch.dict(os.environ, {"DAGSTER_POSTGRES_URL": database.url}))
        endpoint = stack.enter_context(MockEndpoint())
        endpoint.reset(plan=DECISION, seconds=load.seconds)
        settings = {name: value for name, value in os.environ.items() if not name.startswith("DARKROOM_")}
        settings |= {
            "DARKROOM_HOME": store.url(),
            "DARKROOM_LOCAL": str(local),
            "DAGSTER_HOME": str(local / "dagster"),
            "DARKROOM_LEDGER": new_ledger(database),
            "DARKROOM_POLICY": "openai",
            "DARKROOM_POLICY_URL": endpoint.url,
            "DARKROOM_POLICY_MODEL": "mock",
            "DARKROOM_POLICY_CONCURRENCY": str(load.n_calls),
        }
        add_source(settings, folder / SOURCE, load.n_shards)
        ray = stack.enter_context(ray_cluster(n_workers=n_workers))
        instance = stack.enter_context(dg.DagsterInstance.from_config(settings["DAGSTER_HOME"]))
        yield Site(folder, endpoint, database, store, ray, settings, instance)


def write_rows(folder: Path, load: Load) -> None:
    """Small images of noise, each with a question that the mock answers rightly in seven of eleven cases."""
    folder.mkdir()
    lines = []
    for n in range(load.n_shards * load.n_rows):
        Image.fromarray(np.random.default_rng(n).integers(0, 255, (32, 32, 3), np.uint8)).save(folder / f"{n}.png")
        lines.append(json.dumps({"image": f"{n}.png", "question": f"What is row {n}?", "answer": "yes"}))
    (folder / "questions.jsonl").write_text("\n".join(lines))


def add_source(settings: dict[str, str], folder: Path, n_shards: int) -> None:
    questions = str(folder / "questions.jsonl")
    with Workspace.from_environment(settings) as workspace:
        Catalog(workspace.sources).add(
            SOURCE, SourceConfig(kind="jsonl", path=str(folder), questions=questions, n_shards=n_shards, license="MIT")
        )
