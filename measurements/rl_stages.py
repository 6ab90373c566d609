"""The RL stages that ask a model eight times a row, as their assets run them."""

from pathlib import Path

from darkroom.pipelines.generation.stage import Shard
from darkroom.pipelines.models.policies import Endpoint, OpenAIPolicy
from darkroom.pipelines.records import CheckedLabel, RLCandidate, Votes
from darkroom.pipelines.rl import labels
from darkroom.pipelines.rl.candidates import ASSET as CANDIDATES
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.suitability import Suitability
from measurements.rl_client import N_VOTES
from measurements.rl_shards import open_workspace, partition, write_shards

CONCURRENCY = 8
ROWS_AT_WORK = 10
"""A quarter more than calls, as the policy says."""


def prepare(home: Path, n_rows: int) -> None:
    """A shard's problems, and undisputed labels."""
    write_shards(home, n_rows)
    with open_workspace(home) as workspace:
        shard = Shard(workspace, partition(0))
        found = workspace.tables.read(shard.key(CANDIDATES), RLCandidate)
        rows = [CheckedLabel(row.sample_id, Votes("judge", (True,), 1)) for row in found]
        facts = workspace.tables.facts(shard.key(CANDIDATES))
        workspace.tables.write(shard.key(labels.ASSET), CheckedLabel, rows, [], inputs="mock", facts=facts)


def materialize(url: str, home: Path, *, send_n: bool) -> None:
    """Suitability votes and pass rates of the shard, or what is left of them; one request a row with ``send_n``."""
    with open_workspace(home) as workspace:
        shard = Shard(workspace, partition(0))
        endpoint = Endpoint(url, "mock", concurrency=CONCURRENCY, send_n=send_n)
        shard.materialize(Suitability(judge=OpenAIPolicy(endpoint, workspace.images), n_votes=N_VOTES))
        shard.materialize(PassRates(student=OpenAIPolicy(endpoint, workspace.images), n_answers=N_VOTES))
