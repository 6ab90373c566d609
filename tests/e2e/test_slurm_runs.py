"""Shards of a source as jobs of a real Slurm: the process of one is killed, and Dagster submits it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkroom.assets.clusters.slurm import JOB_TAG, queued_jobs
from tests.e2e.team import started, tables_of, team
from tests.waiting import wait_until


def test_a_shard_whose_job_is_killed_is_submitted_again_to_the_same_bytes(
    slurm: str, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    with team(tmp_path, clean_environment | {"SLURM_CONF": slurm}) as found, found.building("slurm") as command:
        paid = found.paid()
        lost, process = started(found.runs())
        process.kill()
        assert command.wait(600) == 0, found.log
        found.check_repeated(lost, paid)
        jobs = [run.tags[JOB_TAG] for run in found.runs()]
        assert len(set(jobs)) == 3, jobs
        wait_until(lambda: not queued_jobs())
        logs = tmp_path / "home" / "dagster" / "slurm"
        assert len(list(logs.glob("*.log"))) == 3
        assert not list(logs.glob("*.sbatch")), "the databases' passwords are in them"


@pytest.mark.soak
def test_a_quota_is_filled_in_rounds_to_the_same_bytes_by_a_command_that_was_killed(
    slurm: str, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    quota = ("--quota", "crop=5")
    with team(tmp_path, clean_environment | {"SLURM_CONF": slurm}) as found:
        with found.building("slurm", *quota) as command:
            paid = found.paid()
            command.kill()
        with found.building("slurm", *quota) as command:
            assert command.wait(600) == 0, found.log
        after = found.paid()
        assert {key: after.get(key) for key in paid} == paid, "an act that was durable was made again"
        assert tables_of(found.settings) == tables_of(found.undisturbed(*quota))
        assert len({run.tags["dagster/partition"] for run in found.runs()}) == 2, "one shard has too few rows"
        wait_until(lambda: not queued_jobs())
