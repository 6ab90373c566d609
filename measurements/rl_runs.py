"""Runs of voting clients that take turns: the shards of the largest run, and smaller ones between them."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from measurements.mock_endpoint import MockEndpoint
from measurements.rl_client import N_VOTES
from measurements.rl_shards import WARM_UP, write_shards

Way = Literal["n", "single"]
SMALL, MIDDLE = 1_000, 10_000
_TURNS, _MIDDLE_TURNS = 8, 2


class Figures(NamedTuple):
    """What one shard took, or several."""

    n_votes: int
    seconds: float
    cpu_seconds: float
    memory_mb: float
    peak_mb: float

    @property
    def n_rows(self) -> int:
        return self.n_votes // N_VOTES

    @property
    def rows_per_second(self) -> float:
        return self.n_rows / self.seconds

    @property
    def cpu_ms_per_row(self) -> float:
        return self.cpu_seconds / self.n_rows * 1e3


class Turn(NamedTuple):
    """A stretch of the largest run and its neighbours."""

    largest: list[Figures]
    small: Figures
    bare: Figures


@dataclass
class Runs:
    """All of one way of asking."""

    way: Way
    n_most: int
    turns: list[Turn] = field(default_factory=list)
    middle: list[Figures] = field(default_factory=list)
    ledger_bytes_per_vote: float = 0.0

    @property
    def shards(self) -> list[Figures]:
        return [figures for turn in self.turns for figures in turn.largest]


class Client:
    """``measurements.rl_client``, warmed up, while the context lasts."""

    def __init__(self, kind: str, endpoint: MockEndpoint, home: Path, way: Way) -> None:
        self._command = [sys.executable, "-m", "measurements.rl_client", kind, endpoint.url, str(home), way]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.vote(WARM_UP)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def vote(self, partition: str) -> Figures:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(partition, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the client has ended; what it said stands above")
        return Figures(**json.loads(line))


def vote_on(endpoint: MockEndpoint, way: Way, n_most: int, folder: Path) -> Runs:
    """``n_most`` problems in one folder; at every eighth of it the smaller runs."""
    endpoint.reset(takes_n=way == "n")
    runs, home = Runs(way, n_most), folder / "largest"
    partitions = write_shards(home, n_most)
    with Client("darkroom", endpoint, home, way) as client:
        for turn in range(_TURNS):
            mine = partitions[turn * len(partitions) // _TURNS : (turn + 1) * len(partitions) // _TURNS]
            largest = [client.vote(partition) for partition in mine]
            small, bare = (_fresh(endpoint, kind, way, SMALL, folder / kind) for kind in ("darkroom", "aiohttp"))
            runs.turns.append(Turn(largest, small, bare))
            if n_most > MIDDLE and turn % (_TURNS // _MIDDLE_TURNS) == 0:
                runs.middle.append(_fresh(endpoint, "darkroom", way, MIDDLE, folder / "middle"))
            _tell(runs)
    n_votes = sum(figures.n_votes for figures in runs.shards)
    runs.ledger_bytes_per_vote = sum(path.stat().st_size for path in home.glob("ledger.sqlite*")) / n_votes
    return runs


def _tell(runs: Runs) -> None:
    """Where it is, for those who wait."""
    turn = runs.turns[-1]
    largest = together(turn.largest)
    print(
        f"{runs.way}: {len(runs.turns)} of {_TURNS} parts; CPU per row {largest.cpu_ms_per_row:.2f} ms, alone "
        f"{turn.small.cpu_ms_per_row:.2f}, bare {turn.bare.cpu_ms_per_row:.2f}; {largest.rows_per_second:.0f} rows/s, "
        f"memory {largest.memory_mb:.0f} MB, peak {largest.peak_mb:.0f} MB",
        file=sys.stderr,
        flush=True,
    )


def _fresh(endpoint: MockEndpoint, kind: str, way: Way, n_rows: int, home: Path) -> Figures:
    """A run in a folder and a process of its own."""
    partitions = write_shards(home, n_rows)
    with Client(kind, endpoint, home, way) as client:
        made = [client.vote(partition) for partition in partitions]
    shutil.rmtree(home)
    return together(made)


def together(shards: list[Figures]) -> Figures:
    """The whole of a run; memory as it was at the end, and its peak."""
    totals: dict[str, Any] = {
        name: sum(getattr(figures, name) for figures in shards) for name in ("n_votes", "seconds", "cpu_seconds")
    }
    return Figures(**totals, memory_mb=shards[-1].memory_mb, peak_mb=max(figures.peak_mb for figures in shards))
