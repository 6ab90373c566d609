"""A team for tests: history and ledger in a real PostgreSQL, a source of two shards, a command that builds it.

The same source is built in a folder of this machine, to compare with.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest
import sqlalchemy
import yaml

from darkroom.assets.clusters.worker import WORKER_TAG, host_of
from darkroom.assets.definitions import SFT
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import add_signs
from tests.conftest import SmallSource
from tests.postgres import Postgres, PostgresMissing, postgres_server
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
SHARDS = ["signs-0000", "signs-0001"]


@dataclass(frozen=True)
class Team:
    """``settings``: the environment of its commands; ``instance``: its history."""

    folder: Path
    settings: dict[str, str]
    instance: dg.DagsterInstance

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @contextmanager
    def building(self, place: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """`darkroom materialize` of the source at ``place``, once it has paid for something."""
        with (
            (self.folder / "log").open("wb") as log,
            subprocess.Popen(
                command("--on", place, *words), cwd=ROOT, env=self.settings, stdout=log, stderr=log
            ) as process,
        ):
            try:
                wait_until(lambda: bool(self.paid()) or process.poll() is not None)
                assert process.poll() is None, self.log
                yield process
            finally:
                process.kill()

    def runs(self) -> list[dg.DagsterRun]:
        return list(self.instance.get_runs(dg.RunsFilter(job_name=SFT)))

    def paid(self) -> dict[str, str]:
        """When each act of a policy was made, by key."""
        engine = sqlalchemy.create_engine(self.settings["DARKROOM_LEDGER"], poolclass=sqlalchemy.NullPool)
        with engine.connect() as connection:
            if not sqlalchemy.inspect(connection).has_table("acts"):
                return {}
            acts = connection.exec_driver_sql("SELECT key, made_at FROM acts WHERE kind = 'policy'")
            return {key: str(made_at) for key, made_at in acts}

    def check_repeated(self, lost: dg.DagsterRun, paid: dict[str, str]) -> None:
        """The lost run was repeated; nothing that was ``paid`` was paid again; all is as where nothing was lost."""
        runs = self.runs()
        assert next(run for run in runs if run.run_id == lost.run_id).status == dg.DagsterRunStatus.FAILURE
        (repeated,) = [run for run in runs if run.parent_run_id == lost.run_id]
        assert repeated.status == dg.DagsterRunStatus.SUCCESS
        assert {run.tags["dagster/partition"] for run in runs if run.is_success} == set(SHARDS)
        after = self.paid()
        assert {key: after.get(key) for key in paid} == paid, "an act that was durable was made again"
        assert tables_of(self.settings) == tables_of(self.undisturbed())
        assert "repeated 1 time" in self.log
        assert "crop/trajectories" in self.log

    def undisturbed(self, *words: str) -> dict[str, str]:
        """The settings with which the same source was built on this machine in a home of its own."""
        home = self.folder / "undisturbed"
        (home / "sources").mkdir(parents=True)
        with Workspace.from_environment(self.settings) as workspace:
            for file in workspace.sources.iterdir():
                (home / "sources" / file.name).write_bytes(file.read_bytes())
        here = {name: value for name, value in self.settings.items() if name != "DARKROOM_LEDGER"}
        here |= {"DARKROOM_HOME": str(home), "DARKROOM_LOCAL": str(home), "DAGSTER_HOME": str(home / "dagster")}
        subprocess.run(command(*words), cwd=ROOT, env=here, check=True, capture_output=True)
        return here


def started(runs: Iterable[dg.DagsterRun]) -> tuple[dg.DagsterRun, psutil.Process]:
    """A run that has begun, with the process that works on it; all nodes are this machine's."""
    run = next(run for run in runs if run.status == dg.DagsterRunStatus.STARTED and host_of(run))
    return run, psutil.Process(int(run.tags[WORKER_TAG].split("/")[2]))


def tables_of(settings: dict[str, str]) -> dict[str, tuple[Any, ...]]:
    """Of every table the digest of its rows and rejects, what it was made from, and what the stage says of itself."""
    with Workspace.from_environment(settings) as workspace:
        tables = workspace.tables
        return {str(key): (tables.fingerprint(key), tables.inputs(key), tables.facts(key)) for key in tables.all_keys()}


@contextmanager
def team(folder: Path, environment: dict[str, str]) -> Iterator[Team]:
    """With the shipped settings, but shorter waits; ``environment`` may name another home than ``folder``'s."""
    local = folder / "home"
    environment = {**environment, "DARKROOM_LOCAL": str(local)}
    write_team_settings(local / "dagster")
    with Workspace.from_environment(environment) as workspace:
        add_signs(workspace, SmallSource(), folder / "signs", n_shards=len(SHARDS))
    try:
        with postgres_server("dagster") as server, pytest.MonkeyPatch.context() as patch:
            patch.setenv("DAGSTER_POSTGRES_URL", server.url)
            settings = {**environment, "DAGSTER_POSTGRES_URL": server.url, "DARKROOM_LEDGER": new_ledger(server)}
            with dg.DagsterInstance.from_config(str(local / "dagster")) as instance:
                yield Team(folder, settings, instance)
    except PostgresMissing as error:
        pytest.skip(str(error))


def new_ledger(server: Postgres) -> str:
    """The URL of a ledger beside the server's database ``dagster``."""
    server.create("ledger")
    return server.url.replace("postgresql://", "postgresql+psycopg://").replace("/dagster", "/ledger")


def write_team_settings(folder: Path, *, n_runs: int = 16) -> None:
    """The shipped ``dagster.yaml`` for so many runs at once, with shorter waits."""
    folder.mkdir(parents=True)
    configuration = yaml.safe_load((ROOT / "assets" / "dagster_team.yaml").read_text())
    configuration["concurrency"]["runs"]["max_concurrent_runs"] = n_runs
    configuration["run_monitoring"]["poll_interval_seconds"] = 3
    configuration["run_coordinator"]["config"] |= {"dequeue_interval_seconds": 1, "user_code_failure_retry_delay": 5}
    (folder / "dagster.yaml").write_text(yaml.safe_dump(configuration))


def command(*words: str) -> list[str]:
    program = str(Path(sys.executable).with_name("darkroom"))
    return [program, "materialize", "signs", "--family", "crop", *words]
