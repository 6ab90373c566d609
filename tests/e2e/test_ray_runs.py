"""Shards on a real Ray cluster of three nodes, with the home in an object store and all else in PostgreSQL.

A worker, the databases' server, the object store and the head are killed in the middle, and started again.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator

import dagster as dg
import pytest
from dagster._core.launcher import WorkerStatus

from assets.runs.places import TAG, RunSettings
from assets.runs.ray import connected, ray_launcher
from benchmarks.cluster_site import CONCURRENCY, PLAN, SOURCE, Load, Site, add_source, cluster_site, materialize
from pipelines.storage.workspace import Workspace
from scripts.ports import free_port
from scripts.postgres import PostgresMissing
from tests.e2e.slurm_cluster import wait_until
from tests.e2e.team import ROOT, started, tables_of

LOAD = Load(n_shards=4, n_rows=4, seconds=0.2)
AWAY_SECONDS = 2.0
UNKNOWN = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    try:
        with cluster_site(tmp_path_factory.mktemp("cluster"), LOAD, n_workers=2) as up:
            yield up
    except PostgresMissing as error:
        pytest.skip(str(error))


def test_the_address_of_clients_leads_to_the_same_cluster(site: Site) -> None:
    assert connected(site.ray.address).get_address() == site.ray.url


def test_a_job_that_a_cluster_does_not_know_is_lost_and_one_that_cannot_be_asked_for_is_not(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ray_launcher(site.ray.url, RunSettings())
    with dg.instance_for_test() as instance:
        launcher.register_instance(instance)
        run = dg.DagsterRun("job", run_id=UNKNOWN, status=dg.DagsterRunStatus.STARTED)
        assert launcher.check_run_worker_health(run).status == WorkerStatus.FAILED
        # the port of a head that is gone
        monkeypatch.setattr(launcher.client, "_address", f"http://127.0.0.1:{free_port()}")
        with pytest.raises(OSError, match="refused"):
            launcher.check_run_worker_health(run)


def test_shards_come_to_the_same_bytes_whatever_part_of_the_cluster_is_killed(site: Site) -> None:
    home = undisturbed(site)
    calls = site.endpoint.counts()["served"].keys()
    site.endpoint.reset(plan=PLAN, seconds=LOAD.seconds)
    hold_at(site, len(calls) // 10)
    with site.building() as command:
        wait_for_hold(site, command)
        paid = acts_of(site.settings)
        lost, process = started(run.dagster_run for run in site.runs())
        n_in_flight = kill(site, site.ray.node_of(process).kill, site.ray.add_node)
        others = [
            (site.database.kill, site.database.start),
            (site.store.kill, site.store.start),
            (site.ray.head.kill, site.ray.restart),
        ]
        for n, (kill_it, start_it) in enumerate(others, 1):
            hold_at(site, len(calls) * n // 4)
            wait_for_hold(site, command)
            paid |= acts_of(site.settings)
            n_in_flight += kill(site, kill_it, start_it)
        site.endpoint.hold(None)
        assert command.wait(600) == 0, site.said

    assert tables_of(site.settings) == tables_of(home)
    acts = acts_of(site.settings)
    assert acts.keys() == acts_of(home).keys()
    assert {key: acts[key] for key in paid} == paid, "an act that was durable was made again"
    served = site.endpoint.counts()["served"]
    assert served.keys() == calls
    assert sum(served.values()) - len(served) <= n_in_flight
    runs = [record.dagster_run for record in site.runs()]
    assert {run.tags[TAG] for run in runs} == {site.ray.url}
    assert all(run.is_finished for run in runs), "a run stays open"
    assert next(run for run in runs if run.run_id == lost.run_id).status == dg.DagsterRunStatus.FAILURE
    assert lost.run_id in {run.parent_run_id for run in runs}
    # a run of the worker that was killed, and at least one that the head forgot
    assert len(runs) >= LOAD.n_shards + 2
    assert ", repeated " in site.said


def undisturbed(site: Site) -> dict[str, str]:
    """The settings with which one process built the same source in a folder; nothing else calls the endpoint."""
    home = site.folder / "undisturbed"
    own = ("DARKROOM_LEDGER", "DAGSTER_POSTGRES_URL")
    here = {name: value for name, value in site.settings.items() if name not in own}
    here |= {"DARKROOM_HOME": str(home), "DARKROOM_LOCAL": str(home), "DAGSTER_HOME": str(home / "dagster")}
    add_source(here, site.folder / SOURCE, LOAD.n_shards)
    site.endpoint.reset(plan=PLAN, seconds=0.0)
    subprocess.run(materialize(), cwd=ROOT, env=here, check=True, capture_output=True)
    return here


def acts_of(settings: dict[str, str]) -> dict[str, str]:
    """When each act of a policy was made, by key."""
    with Workspace.from_environment(settings) as workspace, workspace.ledger.engine.connect() as connection:
        return dict(connection.exec_driver_sql("SELECT key, made_at FROM acts WHERE kind = 'policy'").tuples().all())


def hold_at(site: Site, n_calls: int) -> None:
    """Lets calls wait once so many different ones are answered: the build cannot end while a part is away."""
    n_answered = len(site.endpoint.counts()["served"])
    site.endpoint.hold(max(n_calls - n_answered, 0))


def wait_for_hold(site: Site, command: subprocess.Popen[bytes]) -> None:
    """Until calls wait, of a run that has begun."""

    def waits() -> bool:
        assert command.poll() is None, site.said
        counts = site.endpoint.counts()
        is_held = counts["most_served"] is not None and sum(counts["served"].values()) >= counts["most_served"]
        return is_held and counts["in_flight"] > 0

    wait_until(waits)


def kill(site: Site, kill_it: Callable[[], None], start_it: Callable[[], object]) -> int:
    """Some calls are answered while it is away. How many calls and answers could be lost: those that the endpoint had
    begun, and those that it answered whose acts were not in the ledger at the kill."""
    n_durable, n_begun = len(acts_of(site.settings)), site.endpoint.counts()["in_flight"]
    kill_it()
    site.endpoint.hold(CONCURRENCY)
    time.sleep(AWAY_SECONDS)
    start_it()
    counts = site.endpoint.counts()
    return int(max(n_begun, counts["in_flight"])) + len(counts["served"]) - n_durable
