"""Visual suitability: would drawing help to solve a problem? Eight votes on its statement alone, then the majority.

FIGR asks a classifier eight times and takes the majority (§3.3, §4.1, appendix B.1); rewards for drawing depend on the
label. Four against four is a value of its own here, and a setting says what becomes of it. Only problems in words are
asked about: where there is an image, there is nothing to draw.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from darkroom.pipelines.generation.drafting import CONVERSATION_CODE
from darkroom.pipelines.generation.stage import SAMPLES, Rejection, Shard, Stage
from darkroom.pipelines.models.policies.policy import Policy
from darkroom.pipelines.models.self_consistency import collect_votes
from darkroom.pipelines.records import RLCandidate, Sample, SuitabilityLabel, SuitabilityReview, SuitabilityVotes
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.records.rl import majority
from darkroom.pipelines.rl import candidates
from darkroom.pipelines.rl.candidates import turn_of
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.verification.judges.calibration import Calibration, CalibrationError, calibrate
from darkroom.pipelines.verification.judges.judge import SCHEMA, yes_or_no

PROMPT = "suitability"
VOTES, LABELS = "suitability_votes", "suitability_labels"
Tie = Literal["yes", "no", "reject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suitability(Stage[Sample, RLCandidate, SuitabilityVotes]):
    """The votes: ``judge`` is asked ``n_votes`` times, or, to ``stop_early``, until the majority is certain."""

    judge: Policy
    n_votes: int = 8
    stop_early: bool = False

    asset: ClassVar[str] = VOTES
    kind: ClassVar[type[SuitabilityVotes]] = SuitabilityVotes
    code: ClassVar[Sequence[str]] = (
        "darkroom.pipelines.rl.candidates",
        __name__,
        *CONVERSATION_CODE,
        "darkroom.pipelines.verification.judges",
    )
    reads: ClassVar[Sequence[str]] = (*SAMPLES, candidates.ASSET)
    roles: ClassVar[Sequence[str]] = ("judge",)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"n_votes": self.n_votes, "stop_early": self.stop_early}

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, RLCandidate]]:
        """The problems in words."""
        rows = shard.joined(candidates.ASSET, RLCandidate)
        return [(sample, row) for sample, row in rows if not sample.images and not sample.videos]

    async def measure(self, sample: Sample, row: RLCandidate) -> SuitabilityVotes | Rejection:
        turn = turn_of(sample, PROMPT, schema=SCHEMA)
        verdict = majority if self.stop_early else None
        votes = await collect_votes(self.judge, turn, yes_or_no, n_votes=self.n_votes, verdict=verdict, what=PROMPT)
        row_votes = SuitabilityVotes(sample.sample_id, votes)
        if votes.n_invalid == votes.n:
            return Rejection(RowError(Reason.NO_VOTE, f"none of {votes.n} answers is a vote"), row_votes)
        return row_votes


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitabilityLabels(Stage[Sample, SuitabilityVotes, SuitabilityLabel]):
    """Label of the votes; a ``tie`` is taken for what it says."""

    tie: Tie = "no"

    asset: ClassVar[str] = LABELS
    kind: ClassVar[type[SuitabilityLabel]] = SuitabilityLabel
    code: ClassVar[Sequence[str]] = (__name__,)
    reads: ClassVar[Sequence[str]] = (*SAMPLES, VOTES)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"tie": self.tie}

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, SuitabilityVotes]]:
        return shard.joined(VOTES, SuitabilityVotes)

    async def measure(self, sample: Sample, row: SuitabilityVotes) -> SuitabilityLabel | Rejection:
        votes = row.votes
        if (side := self.tie if votes.majority == "tie" else votes.majority) == "reject":
            return Rejection(RowError(Reason.TIED, f"{votes.n_yes} say yes and {votes.n_no} say no"), row)
        counts = {name: getattr(votes, name) for name in ("majority", "n_yes", "n_no", "n_invalid", "judge")}
        return SuitabilityLabel(sample.sample_id, side == "yes", **counts)


REVIEWS = ("suitability_reviews",)


def reviews_key(source: str) -> TableKey:
    """Path of people's verdicts on a source's problems."""
    return TableKey(REVIEWS, source)


def labels_of(tables: Tables, sources: Sequence[str]) -> dict[str, bool]:
    """People's verdict on each problem; one on which they are divided, or cannot tell, is not there."""
    balances: dict[str, int] = defaultdict(int)
    for key in tables.existing(map(reviews_key, sources)):
        for row in tables.read(key, SuitabilityReview):
            balances[row.sample_id] += {"yes": 1, "no": -1, "unsure": 0}[row.verdict]
    return {sample_id: balance > 0 for sample_id, balance in balances.items() if balance}


def agreement(shards: Sequence[Shard], sources: Sequence[str]) -> Calibration:
    """The votes against people, by majority. Raises ``CalibrationError`` for fewer than 20 problems with both."""
    scored: list[tuple[float, bool]] = []
    for shard in shards:
        labels = labels_of(shard.workspace.tables, sources)
        rows = shard.workspace.tables.read(shard.key(VOTES), SuitabilityVotes)
        scored += [(row.votes.share, labels[row.sample_id]) for row in rows if row.sample_id in labels]
    return calibrate([share for share, _ in scored], [label for _, label in scored])


def agreement_in_words(shards: Sequence[Shard], sources: Sequence[str]) -> str:
    """For cards and pages: the kappa with its interval, or why there is none."""
    try:
        calibration = agreement(shards, sources)
    except CalibrationError as error:
        return f"not measured ({error})"
    return f"Cohen's kappa {calibration.kappa} on {calibration.n_labels} problems"
