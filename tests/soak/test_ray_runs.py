"""Shards on a real Ray cluster of three nodes, with the home in an object store and all else in PostgreSQL.

A worker, a run, the databases' server, the object store and the head are killed in the middle, and started again.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.launcher import WorkerStatus

from darkroom.assets.clusters.placement import RunSettings
from darkroom.assets.clusters.ray import connected, ray_launcher
from tests.e2e.slurm_cluster import wait_until
from tests.ports import free_port
from tests.postgres import PostgresMissing
from tests.soak.cluster_kills import PARTS, DisturbedBuild
from tests.soak.cluster_site import Load, Site, cluster_site

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
    build = DisturbedBuild.begin(site, LOAD)
    n_calls = len(build.calls)
    with site.building() as command:
        for n, part in enumerate(PARTS):
            hold_at(site, n_calls // 10 + n_calls * n // 6)
            wait_for_hold(site, command)
            site.endpoint.hold(LOAD.n_calls)  # some calls are answered while it is away
            build.kill(part, AWAY_SECONDS)
        site.endpoint.hold(None)
        assert command.wait(600) == 0, site.said

    assert build.problems() == []
    runs = [record.dagster_run for record in site.runs()]
    assert build.lost <= {run.parent_run_id for run in runs}
    # the two runs whose process was killed, and at least one that the head forgot
    assert len(runs) >= LOAD.n_shards + 3
    assert ", repeated " in site.said

    with site.building() as command:
        assert command.wait(600) == 0, site.said
    assert f"{LOAD.n_shards} of {LOAD.n_shards} shards are finished" in site.said
    assert len(site.runs()) == len(runs)


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
