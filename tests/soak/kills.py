"""Work at the mock endpoint that is killed again and again: which answers are asked for twice, and whether the tables
are the same.

Every life is forked from a server that has imported what it needs: an interpreter of its own would take as long to
start as the work takes.
"""

import multiprocessing
import os
import random
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.mock_endpoint import MockEndpoint

SEED = 20261121
Work = Callable[[str, Path], object]
"""Does what is left to do in a home, with the endpoint at this URL. It travels to another process."""
_MOST_LATE = 64
"""Answers that may come between the moment and the kill: on a busy machine all that are in flight might."""
NAME = re.compile(r"\b[0-9a-f]{16}\b")
"""Of an answer, in its text."""
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["tests.drafting", "tests.soak.rl_stages"])


@dataclass(frozen=True)
class State:
    """What the endpoint and the ledger knew at one moment, by answer."""

    tries: Counter[str]
    served: Counter[str]
    durable: frozenset[str]


@dataclass(frozen=True)
class Killed:
    """Work with all of its kills. ``states``: before the first life, after each kill, and when all was done.

    ``n_at_once``: answers that the work may wait for.
    """

    states: list[State]
    same_tables: bool
    n_answers: int
    n_at_once: int

    @property
    def kills(self) -> list[State]:
        return self.states[1:-1]

    def lost(self, life: int) -> set[str]:
        """Answers that were given in a life, and not yet on record when it ended."""
        before, after = self.states[life], self.states[life + 1]
        return set(after.served - before.served) - after.durable

    def n_in_flight(self, life: int) -> int:
        """Answers that were asked for in a life, given or not, and not yet on record when it ended."""
        before, after = self.states[life], self.states[life + 1]
        return (after.tries - before.tries).total() - len(after.durable - before.durable)

    def n_unexplained(self) -> int:
        """Answers that were given again though no kill had lost them."""
        served, lost = self.states[-1].served, Counter[str]()
        for life in range(len(self.kills)):
            lost.update(self.lost(life))
        return (served - Counter(set(served)) - lost).total()


def killed(
    endpoint: MockEndpoint,
    prepared: Path,
    work: Work,
    *,
    n_answers: int,
    n_at_once: int,
    n_kills: int,
    seed: int = SEED,
    **settings: Any,
) -> Killed:
    """``work`` in two copies of the home ``prepared``: once undisturbed, once killed at random moments and finished.

    ``settings``: the endpoint's.
    """
    undisturbed, home = prepared.with_name("undisturbed"), prepared.with_name("killed")
    for copy in (undisturbed, home):
        shutil.copytree(prepared, copy)
    endpoint.reset(**settings)
    _finish(endpoint, undisturbed, work)
    endpoint.reset(**settings)
    chance, states = random.Random(seed), [_state(endpoint, home)]
    for share in sorted(chance.uniform(0.01, 0.9) for _ in range(n_kills)):
        _live_until(endpoint, home, work, share * n_answers)
        states.append(_state(endpoint, home))
    endpoint.hold(None)
    _finish(endpoint, home, work)
    states.append(_state(endpoint, home))
    return Killed(states, _table_files(home) == _table_files(undisturbed), n_answers, n_at_once)


def _begin(endpoint: MockEndpoint, home: Path, work: Work) -> BaseProcess:
    process = _FORKING.Process(target=_live, args=(work, endpoint.url, home))
    process.start()
    return process


def _live(work: Work, url: str, home: Path) -> None:
    os.setsid()
    work(url, home)


def _finish(endpoint: MockEndpoint, home: Path, work: Work) -> None:
    process = _begin(endpoint, home, work)
    process.join()
    assert process.exitcode == 0


def _live_until(endpoint: MockEndpoint, home: Path, work: Work, n_durable: float) -> None:
    """Kills the work and all that it started as soon as so many answers are on record, and one more than before."""
    n_before = _n_durable(home)
    moment = max(n_before, n_durable)
    endpoint.hold(int(moment) - n_before + _MOST_LATE)
    process = _begin(endpoint, home, work)
    while _n_durable(home) <= moment and process.is_alive():
        time.sleep(0.005)
    assert process.pid is not None
    endpoint.kill(process.pid, process.join)


def _state(endpoint: MockEndpoint, home: Path) -> State:
    counts = endpoint.counts()
    durable = (name for (result,) in _selected(home, "result") for name in NAME.findall(result))
    return State(Counter(counts["tries"]), Counter(counts["served"]), frozenset(durable))


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


def _table_files(home: Path) -> dict[str, bytes]:
    root = home / "tables"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}
