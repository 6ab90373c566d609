"""The RL stages that ask a model eight times a row, as their assets run them, on problems in words."""

from pathlib import Path

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy
from darkroom.pipelines.records import CheckedLabel, Grader, RLCandidate, Sample, Truth, Usage, Votes
from darkroom.pipelines.rl import candidates, labels
from darkroom.pipelines.rl.candidates import ASSET as CANDIDATES
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability
from darkroom.pipelines.storage.workspace import Workspace

PARTITION = "mock-0000"
N_VOTES = 8
_PLACES = ("Lund", "Genoa", "Kyoto", "Quito", "Perth", "Bergen", "Leeds")
CONCURRENCY = 8
ROWS_AT_WORK = 10
"""A quarter more than calls, as the policy says."""


def prepare(home: Path, n_rows: int) -> None:
    """A shard's problems, and undisputed labels."""
    with open_workspace(home) as workspace:
        shard = Shard(workspace, PARTITION)
        _write(shard, range(n_rows))
        found = workspace.tables.read(shard.key(CANDIDATES), RLCandidate)
        rows = [CheckedLabel(row.sample_id, Votes("judge", (True,), 1)) for row in found]
        facts = workspace.tables.facts(shard.key(CANDIDATES))
        workspace.tables.write(shard.key(labels.ASSET), CheckedLabel, rows, [], inputs="mock", facts=facts)


def materialize(url: str, home: Path, *, send_n: bool) -> None:
    """Suitability votes and pass rates of the shard, or what is left of them; one request a row with ``send_n``."""
    with open_workspace(home) as workspace:
        shard = Shard(workspace, PARTITION)
        endpoint = Endpoint(url, "mock", concurrency=CONCURRENCY, send_n=send_n)
        shard.materialize(Suitability(judge=OpenAIPolicy(endpoint, workspace.images), n_votes=N_VOTES))
        shard.materialize(PassRates(student=OpenAIPolicy(endpoint, workspace.images), n_answers=N_VOTES))


def open_workspace(home: Path) -> Workspace:
    return Workspace.from_environment({"DARKROOM_HOME": str(home)})


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
