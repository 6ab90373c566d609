"""The ledger on a real PostgreSQL, started for the test from Debian's package."""

from __future__ import annotations

import asyncio
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from rich.console import Console
from rich.status import Status

from darkroom.assets.builds.jobs import _patiently
from darkroom.assets.clusters.queued_runs import QueuedRuns
from darkroom.assets.definitions import SAMPLES
from darkroom.pipelines.models.policies import BudgetPool, SpendTracker
from darkroom.pipelines.models.policies.budget import Spending
from darkroom.pipelines.records import Usage
from darkroom.pipelines.storage.cached_calls import CachedCall
from darkroom.pipelines.storage.database import LedgerUnavailable
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.storage.workspace import Workspace
from tests.assets.conftest import PARTITION, add_signs, materialize_shard
from tests.conftest import SmallSource
from tests.pipelines.models.policies.sharers import most_in_flight_of_three
from tests.pipelines.storage.claimants import paid_by_two
from tests.postgres import Postgres


@pytest.fixture(scope="module")
def url(postgres_server: Postgres) -> str:
    return postgres_server.url.replace("postgresql://", "postgresql+psycopg://")


def test_an_act_is_found_again_by_another_connection(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.put("a" * 64, "policy", {"n": 1}, CachedCall({"text": "hé"}, seconds=1.5, cost_usd=0.25))
    with Ledger(url) as ledger:
        assert ledger.get("a" * 64) == CachedCall({"text": "hé"}, seconds=1.5, cost_usd=0.25)


def test_of_many_writers_the_first_one_stays(url: str) -> None:
    def write(n: int) -> int:
        with Ledger(url) as ledger:
            return int(ledger.put("b" * 64, "policy", {}, CachedCall({"n": n})).result["n"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(write, range(16)))) == 1


def test_processes_that_start_at_once_find_one_table(url: str) -> None:
    with Ledger(url) as ledger, ledger.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE acts")

    def start(n: int) -> int:
        with Ledger(url) as opened:
            return int(opened.put("1" * 64, "policy", {}, CachedCall({"n": n})).result["n"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(start, range(16)))) == 1  # all found the table, and the act of the first


def test_once_performs_once(url: str) -> None:
    performed = 0

    async def perform() -> CachedCall:
        nonlocal performed
        performed += 1
        return CachedCall({"n": performed})

    with Ledger(url) as ledger:
        for _ in range(3):
            act = asyncio.run(ledger.get_or_run("sandbox", {"code": "print(1)"}, perform))
    assert (performed, act.result["n"]) == (1, 1)


def test_hundreds_of_acts_at_once_are_all_written(url: str) -> None:
    async def all_at_once(ledger: Ledger) -> list[CachedCall]:
        async def perform(n: int) -> CachedCall:
            await asyncio.sleep(0.01)
            return CachedCall({"n": n})

        return await asyncio.gather(*(ledger.get_or_run("group", {"n": n}, lambda n=n: perform(n)) for n in range(600)))

    with Ledger(url) as ledger:
        assert [act.result["n"] for act in asyncio.run(all_at_once(ledger))] == list(range(600))
        assert ledger.totals()["group"].calls == 600


def test_acts_are_found_by_their_seeds(url: str) -> None:
    said = 'é, \U0001f600, a NUL \x00, a \ud800 alone, {"seed": 8}'
    with Ledger(url) as ledger:
        for n, seed in enumerate((7, 8, 2**31 - 1)):
            ledger.put(f"{n:064}", "seeded", {"seed": seed, "messages": [said]}, CachedCall({"n": n}))
        ledger.put("c" * 64, "seeded", {"messages": [said]}, CachedCall({}))
        ledger.put("d" * 64, "other", {"seed": 7}, CachedCall({}))
        found = ledger.with_seeds("seeded", [7, 2**31 - 1, 99])
        assert [(act.request["seed"], act.call.result["n"]) for act in found] == [(7, 0), (2**31 - 1, 2)]
        assert found[0].request["messages"] == [said]
        assert ledger.with_seeds("seeded", []) == []


def test_a_budget_pool_is_shared_by_all_who_write_to_it(url: str) -> None:
    def spend(n: int) -> None:
        with Ledger(url) as ledger:
            pool = BudgetPool(tracker=SpendTracker(ledger, "crop"))
            for _ in range(10):
                pool.pay(Usage(1, 10, 5, 0.01))
            pool.settle()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(spend, range(8)))
    with Ledger(url) as ledger:
        spent = SpendTracker(ledger, "crop").others.usage
    assert (spent.calls, spent.prompt_tokens, spent.completion_tokens) == (80, 800, 400)
    assert spent.cost_usd == pytest.approx(0.8)


@pytest.mark.soak
def test_acts_wait_for_a_server_that_is_killed_and_started_again(
    postgres_server: Postgres, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    performed: list[int] = []

    async def perform(n: int) -> CachedCall:
        performed.append(n)
        await asyncio.sleep(0.01)
        return CachedCall({"n": n})

    async def all_in_turn(ledger: Ledger) -> list[CachedCall]:
        tracker = SpendTracker(ledger, "killed")
        acts = []
        for n in range(60):
            acts.append(await ledger.get_or_run("killed", {"n": n}, lambda n=n: perform(n)))
            tracker.report(Spending(Usage(n + 1, 0, 0, 0.0)))
            if n == 20:
                postgres_server.kill()
                threading.Timer(2.0, postgres_server.start).start()
        await asyncio.to_thread(tracker.settle)
        return acts

    with Ledger(url) as ledger:
        assert [act.result["n"] for act in asyncio.run(all_in_turn(ledger))] == list(range(60)) == performed
        assert ledger.totals()["killed"].calls == 60
        assert SpendTracker(ledger, "killed").others.usage.calls == 60
        monkeypatch.setattr("darkroom.pipelines.storage.database.AWAY_SECONDS", 0.5)
        postgres_server.kill()
        with pytest.raises(LedgerUnavailable, match=r"start it, then run again: finished work is kept$") as raised:
            ledger.get("a" * 64)
        postgres_server.start()
        assert "\n" not in str(raised.value)


def test_dagster_keeps_runs_and_partitions_there_with_the_settings_for_a_team(
    root: Path, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / "dagster"
    home.mkdir(parents=True)
    shutil.copy(root / "assets" / "dagster_team.yaml", home / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url.replace("+psycopg", ""))
    with Workspace.from_environment() as workspace:
        add_signs(workspace, SmallSource(), tmp_path / "signs")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        run = materialize_shard(instance, SAMPLES)
    with dg.DagsterInstance.from_config(str(home)) as again:
        assert again.get_materialized_partitions(dg.AssetKey("samples")) == {PARTITION}
        assert PARTITION in again.get_dynamic_partitions("sft_shards")
        found = again.get_run_by_id(run.run_id)
    assert found is not None
    assert found.is_success
    assert not list(home.rglob("*.db")), "a part of the history is in SQLite"


@pytest.mark.soak
def test_shards_are_queued_once_by_a_history_that_is_killed_meanwhile_and_started_again(
    root: Path, tmp_path: Path, postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, submit, killed_after = ["a", "b", "c"], dg.DagsterInstance.submit_run, list[str]()

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(shards))
    def rows() -> None:
        """Of a shard."""

    def submit_and_kill(instance: dg.DagsterInstance, run_id: str, **options: Any) -> dg.DagsterRun:
        run = submit(instance, run_id, **options)
        if not killed_after:
            killed_after.append(run_id)
            postgres_server.kill()
            threading.Timer(2.0, postgres_server.start).start()
        return run

    shutil.copy(root / "assets" / "dagster_team.yaml", tmp_path / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres_server.url)
    monkeypatch.setattr(dg.DagsterInstance, "submit_run", submit_and_kill)
    job = dg.Definitions(assets=[rows], jobs=[dg.define_asset_job("queued", "*")]).resolve_job_def("queued")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance, Status("", console=Console(quiet=True)) as status:
        queued = QueuedRuns(instance, job, "auto")
        _patiently(status, lambda: queued.submit(shards))
        runs = instance.get_runs(dg.RunsFilter(job_name="queued"))
    assert sorted(run.tags["dagster/partition"] for run in runs) == shards
    assert {run.status for run in runs} == {dg.DagsterRunStatus.QUEUED}
    assert (len(killed_after), queued.n_open()) == (1, 3)


def test_two_processes_that_want_the_same_acts_pay_for_each_once(url: str, tmp_path: Path) -> None:
    assert paid_by_two(url, tmp_path / "paid", 200) == list(range(200))


@pytest.mark.soak
def test_three_processes_share_the_calls_to_an_endpoint(url: str, tmp_path: Path) -> None:
    assert most_in_flight_of_three(url, tmp_path / "moments", total=5, n_calls=20) == 5
