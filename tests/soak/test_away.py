"""A launched run whose ledger's database and object store are killed with -9 and started again in the middle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from darkroom.assets.clusters.placement import RUNS_ON_TAG
from darkroom.assets.definitions import SFT
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import add_signs, materialize_shard
from tests.conftest import SmallSource
from tests.drafting import DECISION
from tests.mock_endpoint import MockEndpoint
from tests.object_store import ObjectStore, S3Server, running
from tests.postgres import Postgres
from tests.waiting import wait_until

DIRECT = [dg.AssetKey(["direct", stage]) for stage in ("drafts", "runs", "verdicts", "trajectories", "rejects")]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """One that keeps what it has."""
    with running(S3Server(tmp_path / "store.jsonl")) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def test_a_launched_run_comes_to_the_same_bytes_and_pays_for_no_more_than_was_in_flight(
    postgres_server: Postgres, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("darkroom.assets.graph.stage_assets._REPEAT_SECONDS", 2.0)
    with MockEndpoint() as endpoint:
        for name, value in {"": "openai", "_URL": endpoint.url, "_MODEL": "mock", "_CONCURRENCY": "1"}.items():
            monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
        endpoint.reset(plan=DECISION)
        expected, calls = tables_of_a_run(tmp_path / "signs"), set(endpoint.counts()["served"])

        endpoint.reset(plan=DECISION, seconds=1.0)
        monkeypatch.setenv("DARKROOM_HOME", store.url())
        monkeypatch.setenv("DARKROOM_LOCAL", str(tmp_path / "local"))
        monkeypatch.setenv("DARKROOM_LEDGER", postgres_server.url.replace("postgresql:", "postgresql+psycopg:"))
        killer = threading.Thread(target=kill_in_turn, args=(endpoint, [postgres_server, store] * 2), daemon=True)
        killer.start()
        assert tables_of_a_run(tmp_path / "again", **{RUNS_ON_TAG: "auto"}) == expected
        killer.join()
        counts = endpoint.counts()["served"]
        assert counts.keys() == calls
        # one call is in flight when the store is away; what waits for the database is not lost
        assert sum(counts.values()) - len(counts) <= 2


def tables_of_a_run(signs: Path, **tags: str) -> dict[str, str]:
    """Of the home of the environment, in which the small source is built; what their rows are, by table."""
    with Workspace.from_environment() as workspace, dg.instance_for_test() as instance:
        add_signs(workspace, SmallSource(), signs)
        assert materialize_shard(instance, SFT, asset_selection=DIRECT, tags=tags).success
        return {str(key): workspace.tables.fingerprint(key) for key in workspace.tables.all_keys()}


def kill_in_turn(endpoint: MockEndpoint, servers: list[Postgres | ObjectStore]) -> None:
    """One after each second call that is answered; each is away for three seconds."""
    for n, server in enumerate(servers, 1):
        wait_until(lambda n=n: len(endpoint.counts()["served"]) >= 2 * n)
        server.kill()
        time.sleep(3.0)
        server.start()
