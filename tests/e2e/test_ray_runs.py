"""Shards on a real Ray cluster of three nodes, with the home in an object store and all else in PostgreSQL.

The node of a run is killed in the middle, another repeats the run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.launcher import WorkerStatus

from assets.runs.places import TAG, RunSettings
from assets.runs.ray import connected, ray_launcher
from scripts.ports import free_port
from tests.e2e.ray_cluster import RayCluster, ray_cluster
from tests.e2e.team import team
from tests.object_store import ObjectStore

UNKNOWN = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def cluster(_object_store_server: ObjectStore) -> Iterator[RayCluster]:
    """The nodes have the object store's credentials themselves."""
    with ray_cluster({**os.environ, **_object_store_server.environment}, n_workers=2) as started:
        yield started


def test_the_address_of_clients_leads_to_the_same_cluster(cluster: RayCluster) -> None:
    assert connected(cluster.address).get_address() == cluster.url


def test_a_job_that_a_cluster_does_not_know_is_lost_and_one_that_cannot_be_asked_for_is_not(
    cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = ray_launcher(cluster.url, RunSettings())
    with dg.instance_for_test() as instance:
        launcher.register_instance(instance)
        run = dg.DagsterRun("job", run_id=UNKNOWN, status=dg.DagsterRunStatus.STARTED)
        assert launcher.check_run_worker_health(run).status == WorkerStatus.FAILED
        # the port of a head that is gone
        monkeypatch.setattr(launcher.client, "_address", f"http://127.0.0.1:{free_port()}")
        with pytest.raises(OSError, match="refused"):
            launcher.check_run_worker_health(run)


def test_a_shard_whose_node_is_killed_is_repeated_on_another_to_the_same_bytes(
    cluster: RayCluster, object_store: ObjectStore, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    environment = clean_environment | object_store.environment | {"DARKROOM_HOME": object_store.url()}
    with team(tmp_path, environment) as found, found.building(cluster.url) as command:
        paid = found.paid()
        lost, process = found.started()
        cluster.node_of(process).kill()
        assert command.wait(600) == 0, found.log
        assert {run.tags[TAG] for run in found.runs()} == {cluster.url}
        found.check_repeated(lost, paid)
        job = connected(cluster.url).get_job_info(f"dagster-run-{lost.run_id}")
        assert "its node has died" in job.message
