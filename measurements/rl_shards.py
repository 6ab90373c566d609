"""Shards of the RL tables with problems in words, written as intake and the screens would have left them."""

from pathlib import Path

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.records import Grader, RLCandidate, Sample, Truth, Usage
from darkroom.pipelines.rl import candidates
from darkroom.pipelines.storage.workspace import Workspace

ROWS_PER_SHARD = 2_500
WARM_UP = "warm-0000"
_WARM_UP_ROWS = range(1_000_000, 1_000_500)
_PLACES = ("Lund", "Genoa", "Kyoto", "Quito", "Perth", "Bergen", "Leeds")


def partition(number: int) -> str:
    return f"mock-{number:04d}"


def open_workspace(home: Path) -> Workspace:
    return Workspace.from_environment({"DARKROOM_HOME": str(home)})


def write_shards(home: Path, n_rows: int, *, rows_per_shard: int = ROWS_PER_SHARD) -> list[str]:
    """``n_rows`` problems in shards; their names. One more is there to warm up with."""
    firsts = range(0, n_rows, rows_per_shard)
    with open_workspace(home) as workspace:
        _write(Shard(workspace, WARM_UP), _WARM_UP_ROWS)
        for number, first in enumerate(firsts):
            _write(Shard(workspace, partition(number)), range(first, min(first + rows_per_shard, n_rows)))
    return [partition(number) for number in range(len(firsts))]


def _write(shard: Shard, numbers: range) -> None:
    samples = [problem(n) for n in numbers]
    rows = [RLCandidate(sample.sample_id, Grader("text"), (), Usage()) for sample in samples]
    facts = {"n_in": len(rows), "n_out": len(rows), "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0}
    tables = shard.workspace.tables
    tables.write(shard.samples_key, Sample, samples, [], inputs="mock", facts=facts)
    tables.write(shard.key(candidates.ASSET), RLCandidate, rows, [], inputs="mock", facts=facts)


def problem(n: int) -> Sample:
    """A problem of about 250 characters, unlike all others."""
    left, right = _PLACES[n % 7], _PLACES[n % 11 % 7]
    question = (
        f"Two trams leave the stops {left} and {right} on a straight line of {n + 3} metres at the same moment. "
        f"The first needs {n % 97 + 5} seconds for {n % 13 + 2} metres, the second {n % 89 + 7} seconds for "
        f"{n % 17 + 3}. Do they meet before either has passed the middle of the line? Answer yes or no."
    )
    return Sample(f"{n:064x}", "mock", f"row/{n}", "CC0-1.0", (), question, (), "yes", Truth(), "algebra")
