"""Builds of a command."""

from __future__ import annotations

import gc

import pytest

from darkroom.assets.builds.build import N_ROWS_A_RUN, build_sft, fill_shards
from darkroom.assets.builds.jobs import ShardRun
from darkroom.assets.clusters.placement import LOCAL
from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import PolicyUnavailable
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.sandbox.terminal import SafeConsole


def test_an_endpoint_that_does_not_answer_ends_a_build_in_one_line(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"": "openai", "_URL": "http://127.0.0.1:9/v1", "_MODEL": "m"}
    for name, value in settings.items():
        monkeypatch.setenv(f"DARKROOM_POLICY{name}", value)
    with pytest.raises(PolicyUnavailable, match=r"nothing answers at http://127\.0\.0\.1:9/v1"):
        build_sft(SafeConsole(quiet=True), "demo", train=False, families=["crop"])
    gc.collect()
    assert "Unclosed" not in caplog.text


class CountedJobs:
    """Jobs that draft a shard's samples in order: every second one of ``crop`` is accepted, all of ``direct``."""

    def __init__(self, runs_on: str, n_samples: int) -> None:
        self.runs_on, self._n_samples = runs_on, n_samples
        self.rounds: list[dict[str, dict[str, int | None]]] = []
        self._drafted: dict[tuple[str, str], int] = {}

    def unfinished(self, _name: str, partitions: list[str], _keys: object) -> list[str]:
        return partitions

    def run_shards(self, _name: str, work: dict[str, ShardRun]) -> None:
        self.rounds.append({})
        for partition, (only, settings) in work.items():
            families = {key.path[0] for key in only or ()}
            limits = {family: (settings or {}).get(f"{family}__drafts", {}).get("n_most") for family in families}
            self.rounds[-1][partition] = limits
            for family, limit in limits.items():
                self._drafted[family, partition] = min(self._n_samples, self._n_samples if limit is None else limit)

    def n_rows(self, asset: tuple[str, str], partition: str) -> int:
        n_drafted = self._drafted.get((asset[0], partition), 0)
        return n_drafted // 2 if asset == ("crop", "trajectories") else n_drafted

    def accepted(self, family: str, partitions: list[str]) -> int:
        return sum(self.n_rows((family, "trajectories"), partition) for partition in partitions)


@pytest.mark.parametrize("place", [LOCAL, "slurm"])
def test_a_family_stops_when_its_quota_is_full_and_another_is_built_whole(place: str) -> None:
    shards, recipes = [f"signs-{n:04d}" for n in range(6)], load_recipes()
    jobs = CountedJobs(place, n_samples=100)
    fill_shards(jobs, [recipes["crop"], recipes["direct"]], shards, {"crop": 120})  # type: ignore[arg-type]
    assert jobs.accepted("direct", shards) == 600
    assert 120 <= jobs.accepted("crop", shards) <= 122
    assert jobs.rounds[0] == {shard: {"direct": None} for shard in shards}
    n_at_once = [len(each) for each in jobs.rounds[1:]]
    assert max(n_at_once) == (1 if place == LOCAL else -(-120 // N_ROWS_A_RUN))
    assert len({shard for each in jobs.rounds[1:] for shard in each}) == 3, "the others are not even read"


def test_a_quota_of_no_rows_runs_nothing() -> None:
    jobs = CountedJobs("slurm", n_samples=100)
    fill_shards(jobs, [load_recipes()["crop"]], ["signs-0000"], {"crop": 0})  # type: ignore[arg-type]
    assert jobs.rounds == []
