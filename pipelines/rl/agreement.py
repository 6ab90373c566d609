"""How far the suitability votes agree with people, who said whether a drawing would help (``annotation/``).

People's words are the table ``suitability_reviews``, one partition a source; of several on one problem most decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipelines.judges.calibration import Calibration, CalibrationFault, calibrate
from pipelines.records import SuitabilityReview, SuitabilityVotes
from pipelines.rl.shard import Shard
from pipelines.rl.suitability import VOTES
from pipelines.tables import TableKey, Tables

REVIEWS = ("suitability_reviews",)


def reviews_key(source: str) -> TableKey:
    """Where people's words on a source's problems lie."""
    return TableKey(REVIEWS, source)


def labels_of(tables: Tables, sources: Sequence[str]) -> dict[str, bool]:
    """What people say of each problem; one on which they are divided, or cannot tell, is not there."""
    said: dict[str, int] = defaultdict(int)
    for source in sources:
        key = reviews_key(source)
        for row in tables.read(key, SuitabilityReview) if tables.exists(key) else ():
            said[row.sample_id] += {"yes": 1, "no": -1, "unsure": 0}[row.verdict]
    return {sample_id: balance > 0 for sample_id, balance in said.items() if balance}


def agreement(shards: Sequence[Shard], sources: Sequence[str]) -> Calibration:
    """The votes against people, by majority. Raises ``CalibrationFault`` for fewer than 20 problems with both."""
    found: list[tuple[float, bool]] = []
    for shard in shards:
        labels = labels_of(shard.workspace.tables, sources)
        rows = shard.workspace.tables.read(shard.key(VOTES), SuitabilityVotes)
        found += [(row.votes.share, labels[row.sample_id]) for row in rows if row.sample_id in labels]
    return calibrate([share for share, _ in found], [label for _, label in found])


def agreement_in_words(shards: Sequence[Shard], sources: Sequence[str]) -> str:
    """For cards and pages: the kappa with its interval, or why there is none."""
    try:
        found = agreement(shards, sources)
    except CalibrationFault as fault:
        return f"not measured ({fault})"
    return f"Cohen's kappa {found.kappa} on {found.n_labels} problems"
