"""RL stages that are killed again and again: which answers are asked for twice, and whether the tables are the same.

Every life is forked from a server that has imported what it needs: an interpreter of its own would take as long to
start as the stages take to run.
"""

import multiprocessing
import os
import random
import re
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from benchmarks.mock_endpoint import MockEndpoint, table_files
from benchmarks.rl_client import N_VOTES
from benchmarks.rl_runs import Way
from benchmarks.rl_shards import open_workspace, partition, write_shards
from pipelines.generation.stage import Shard
from pipelines.models.policies import Endpoint, OpenAIPolicy
from pipelines.records import CheckedLabel, RLCandidate, Votes
from pipelines.rl import labels
from pipelines.rl.candidates import ASSET as CANDIDATES
from pipelines.rl.pass_rates import PassRates
from pipelines.rl.suitability import Suitability

SEED = 20261121
CONCURRENCY = 8
_SECONDS = 0.05
ROWS_AT_WORK = 10
"""A quarter more than calls, as the policy says."""
_MOST_LATE = CONCURRENCY * N_VOTES
"""Answers that may come between the moment and the kill: on a busy machine all of them might."""
_NAME = re.compile(r"[0-9a-f]{16}")
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["benchmarks.rl_kills"])


@dataclass(frozen=True)
class State:
    """What the endpoint and the ledger knew at one moment, by answer."""

    tries: Counter[str]
    served: Counter[str]
    durable: frozenset[str]


@dataclass(frozen=True)
class Killed:
    """A shard with all of its kills. ``states``: before the first life, after each kill, and when all was done."""

    states: list[State]
    same_tables: bool
    n_answers: int

    @property
    def kills(self) -> list[State]:
        return self.states[1:-1]

    def lost(self, life: int) -> set[str]:
        """Answers that were given in a life, and not yet on record when it ended."""
        before, after = self.states[life], self.states[life + 1]
        return set(after.served - before.served) - after.durable


def materialize(url: str, home: Path, way: Way) -> None:
    """Suitability votes and pass rates of the shard, or what is left of them."""
    os.setsid()
    with open_workspace(home) as workspace:
        shard = Shard(workspace, partition(0))
        endpoint = Endpoint(url, "mock", concurrency=CONCURRENCY, send_n=way == "n")
        shard.materialize(Suitability(judge=OpenAIPolicy(endpoint, workspace.images), n_votes=N_VOTES))
        shard.materialize(PassRates(student=OpenAIPolicy(endpoint, workspace.images), n_answers=N_VOTES))


def killed(endpoint: MockEndpoint, folder: Path, way: Way, *, n_rows: int, n_kills: int) -> Killed:
    """The same shard twice: once undisturbed, once killed ``n_kills`` times at random moments and then finished."""
    undisturbed, home = folder / "undisturbed", folder / "killed"
    _prepare(undisturbed, n_rows)
    shutil.copytree(undisturbed, home)
    endpoint.reset(seconds=_SECONDS)
    _finish(endpoint, undisturbed, way)
    endpoint.reset(seconds=_SECONDS)
    chance, n_answers = random.Random(f"{SEED} {way}"), 2 * N_VOTES * n_rows
    states = [_state(endpoint, home)]
    for share in sorted(chance.uniform(0.01, 0.9) for _ in range(n_kills)):
        _live_until(endpoint, home, way, share * n_answers)
        states.append(_state(endpoint, home))
    endpoint.hold(None)
    _finish(endpoint, home, way)
    states.append(_state(endpoint, home))
    return Killed(states, table_files(home) == table_files(undisturbed), n_answers)


def _prepare(home: Path, n_rows: int) -> None:
    """The problems, and undisputed labels."""
    write_shards(home, n_rows)
    with open_workspace(home) as workspace:
        shard = Shard(workspace, partition(0))
        found = workspace.tables.read(shard.key(CANDIDATES), RLCandidate)
        rows = [CheckedLabel(row.sample_id, Votes("judge", (True,), 1)) for row in found]
        facts = workspace.tables.facts(shard.key(CANDIDATES))
        workspace.tables.write(shard.key(labels.ASSET), CheckedLabel, rows, [], inputs="mock", facts=facts)


def _begin(endpoint: MockEndpoint, home: Path, way: Way) -> BaseProcess:
    process = _FORKING.Process(target=materialize, args=(endpoint.url, home, way))
    process.start()
    return process


def _finish(endpoint: MockEndpoint, home: Path, way: Way) -> None:
    process = _begin(endpoint, home, way)
    process.join()
    assert process.exitcode == 0


def _live_until(endpoint: MockEndpoint, home: Path, way: Way, n_durable: float) -> None:
    """Kills the stages and all that they started as soon as so many answers are on record, and one more than before."""
    n_before = _n_durable(home)
    moment = max(n_before, n_durable)
    endpoint.hold(int(moment) - n_before + _MOST_LATE)
    process = _begin(endpoint, home, way)
    while _n_durable(home) <= moment and process.is_alive():
        time.sleep(0.005)
    assert process.pid is not None
    endpoint.kill(process.pid, process.join)


def _state(endpoint: MockEndpoint, home: Path) -> State:
    counts = endpoint.counts()
    return State(Counter(counts["tries"]), Counter(counts["served"]), frozenset(_durable(home)))


def _durable(home: Path) -> list[str]:
    """The answers on record, by what they say."""
    return [name for (result,) in _selected(home, "result") for name in _NAME.findall(result)]


def _n_durable(home: Path) -> int:
    """Of acts, each of which is an answer."""
    return sum(n for (n,) in _selected(home, "count(*)"))


def _selected(home: Path, what: str) -> list[tuple[Any, ...]]:
    if not (home / "ledger.sqlite").exists():
        return []
    with closing(sqlite3.connect(home / "ledger.sqlite")) as ledger:
        if not ledger.execute("SELECT 1 FROM sqlite_master WHERE name = 'acts'").fetchone():
            return []
        return ledger.execute(f"SELECT {what} FROM acts").fetchall()
