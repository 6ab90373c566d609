"""Parts of a cluster are killed with -9 while a source is built on it, and come back; what must be true at the end.

Compared with a build of the same source by one process in a folder, where nothing is killed.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, get_args

import psutil

from darkroom.assets.clusters.placement import RUNS_ON_TAG
from darkroom.pipelines.storage.workspace import Workspace
from tests.drafting import DECISION
from tests.e2e.team import ROOT, started, tables_of
from tests.soak.cluster_site import SOURCE, Load, Site, add_source, materialize
from tests.soak.kills import NAME

Part = Literal["node", "run", "database", "store", "head"]
"""A node on which a run works; a run's process; PostgreSQL; the S3 server; Ray's head."""
PARTS: tuple[Part, ...] = get_args(Part)
_WEIGHTS: Mapping[Part, int] = {"node": 3, "run": 3, "database": 3, "store": 3, "head": 1}
"""Without its head a cluster works on nothing, and on a busy machine it is back after minutes."""
_MOST_COMMANDS, _LATEST, _MOST_DELAY_SECONDS, _POLL_SECONDS = 20, 0.95, 10.0, 0.2


@dataclass(frozen=True)
class Moment:
    """When a part is killed: after so many different answers, and so many seconds."""

    n_answered: int
    seconds: float
    part: Part


def moments(n_kills: int, n_calls: int, seed: int) -> list[Moment]:
    """Random parts at random moments of a build that makes so many calls."""
    chosen = random.Random(seed)
    parts = chosen.choices(PARTS, [_WEIGHTS[part] for part in PARTS], k=n_kills)
    after = sorted(int(n_calls * chosen.uniform(0.0, _LATEST)) for _ in parts)
    return [Moment(n, chosen.uniform(0.0, _MOST_DELAY_SECONDS), part) for n, part in zip(after, parts, strict=True)]


@dataclass
class DisturbedBuild:
    """A build at a site. ``n_in_flight``: answers that the kills could lose: those begun, and those not yet durable."""

    site: Site
    expected: dict[str, str]
    """The settings of the home where nothing was killed."""
    calls: frozenset[str]
    n_in_flight: int = 0
    kills: Counter[Part] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    """Runs whose process was killed."""
    _paid: dict[str, int] = field(default_factory=dict)
    """How often an answer had been given when it was first known to be in the ledger."""
    _made: dict[str, str] = field(default_factory=dict)
    _joiner: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """One node after the other."""
    _joining: list[Future[object]] = field(default_factory=list)

    @classmethod
    def begin(cls, site: Site, load: Load) -> DisturbedBuild:
        """Builds the source undisturbed first. Nothing else calls the endpoint meanwhile."""
        expected = _build_undisturbed(site, load)
        calls = frozenset(site.endpoint.counts()["served"])
        site.endpoint.reset(plan=DECISION, seconds=load.seconds)
        return cls(site, expected, calls)

    def kill(self, part: Part, away_seconds: float, *, is_over: Callable[[], bool] = lambda: False) -> None:
        """Kills one and, after a while, starts it again. Waits for a run to kill, unless the build ``is_over``.

        A node joins again while others may be killed: that takes minutes on a busy machine.
        """
        n_open = self._look()
        start_again = self._kill(part, is_over)
        if start_again is None:
            return
        time.sleep(away_seconds)
        if part == "node":
            self._joining.append(self._joiner.submit(start_again))
        else:
            start_again()
        self.n_in_flight += max(n_open, self._look())
        self.kills[part] += 1

    def wait_for_nodes(self) -> None:
        """Until those that were killed have joined again."""
        while self._joining:
            self._joining.pop().result()

    def problems(self) -> list[str]:
        """What is not as it must be, when the command has ended well."""
        self.wait_for_nodes()
        found = []
        if tables_of(self.site.settings) != tables_of(self.expected):
            found.append("a table is not that of an undisturbed build")
        made, served = acts_of(self.site.settings), self.site.endpoint.counts()["served"]
        if made.keys() != acts_of(self.expected).keys():
            found.append("the ledger has other acts")
        if any(made.get(key) != made_at for key, made_at in self._made.items()):
            found.append("an act that was durable is lost or another")
        if served.keys() != self.calls:
            found.append("other calls were made")
        if again := sum(served[name] > n for name, n in self._paid.items()):
            found.append(f"{again} answers that were in the ledger were paid again")
        if self.n_paid_again > self.n_in_flight:
            found.append(f"{self.n_paid_again} answers were paid twice, {self.n_in_flight} were in flight")
        runs = [record.dagster_run for record in self.site.runs()]
        if not all(run.is_finished for run in runs):
            found.append("a run stays open")
        if {run.tags[RUNS_ON_TAG] for run in runs} != {self.site.ray.url}:
            found.append("a run was not on the cluster")
        return found

    @property
    def n_paid_again(self) -> int:
        """Answers beyond the first of each."""
        served = self.site.endpoint.counts()["served"]
        return sum(served.values()) - len(served)

    def _look(self) -> int:
        """Notes what is durable. How many answers were asked for that are not."""
        # in this order: what comes between counts as in flight, and as paid before it was durable
        durable, made = _answers(self.site.settings), acts_of(self.site.settings)
        counts = self.site.endpoint.counts()
        for name in durable & counts["served"].keys():
            self._paid.setdefault(name, counts["served"][name])
        self._made = made | self._made
        return len(counts["tries"].keys() - durable)

    def _kill(self, part: Part, is_over: Callable[[], bool]) -> Callable[[], object] | None:
        """Returns what starts it again; None where there was nothing to kill."""
        site = self.site
        if part == "database":
            site.database.kill()
            return site.database.start
        if part == "store":
            site.store.kill()
            return site.store.start
        if part == "head":
            self.wait_for_nodes()
            site.ray.head.kill()
            return site.ray.restart
        while not is_over():
            try:
                run, process = started(record.dagster_run for record in site.runs())
                node = site.ray.node_of(process)
                process.kill() if part == "run" else node.kill()
            except (StopIteration, psutil.NoSuchProcess):  # no run has begun, or it is over
                time.sleep(_POLL_SECONDS)
            else:
                self.lost.add(run.run_id)
                return (lambda: None) if part == "run" else site.ray.add_node
        return None


def build_with_kills(
    build: DisturbedBuild, kills: list[Moment], away_seconds: float, *, say: Callable[[str], None]
) -> int:
    """Kills at the ``kills`` moments. A command that says that a shard failed is given again: how many it took."""
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(_build, build.site)
        for n, moment in enumerate(kills, 1):
            if not _comes(moment, build.site, building):
                break
            time.sleep(moment.seconds)
            build.kill(moment.part, away_seconds, is_over=building.done)
            say(f"{n}: {moment.part} at {moment.n_answered} answers, paid twice {build.n_paid_again}")
        return building.result()


def _comes(moment: Moment, site: Site, building: Future[int]) -> bool:
    while not building.done():
        if len(site.endpoint.counts()["served"]) >= moment.n_answered:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _build(site: Site) -> int:
    for n_commands in range(1, _MOST_COMMANDS + 1):
        with site.building() as command:
            if command.wait() == 0:
                return n_commands
    raise SystemExit(site.said)


def acts_of(settings: dict[str, str]) -> dict[str, str]:
    """When each act of a policy was made, by key."""
    return {key: made_at for key, made_at, _ in _acts(settings)}


def _answers(settings: dict[str, str]) -> set[str]:
    """The names of the endpoint's answers that are in the ledger."""
    return {name for _, _, text in _acts(settings) for name in NAME.findall(text)}


def _acts(settings: dict[str, str]) -> list[tuple[str, str, str]]:
    with Workspace.from_environment(settings) as workspace, workspace.ledger.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT key, made_at, result FROM acts WHERE kind = 'policy'")
        return [(row.key, row.made_at, row.result) for row in rows]


def _build_undisturbed(site: Site, load: Load) -> dict[str, str]:
    """The settings with which one process built the same source in a folder."""
    home = site.folder / "undisturbed"
    own = ("DARKROOM_LEDGER", "DAGSTER_POSTGRES_URL")
    here = {name: value for name, value in site.settings.items() if name not in own}
    here |= {"DARKROOM_HOME": str(home), "DARKROOM_LOCAL": str(home), "DAGSTER_HOME": str(home / "dagster")}
    add_source(here, site.folder / SOURCE, load.n_shards)
    site.endpoint.reset(plan=DECISION, seconds=0.0)
    subprocess.run(materialize(), cwd=ROOT, env=here, check=True, capture_output=True)
    return here
