"""Visual suitability: would drawing help to solve a problem? Eight votes on its statement alone, then the majority.

FIGR asks a classifier eight times and takes the majority (§3.3, §4.1, appendix B.1); rewards for drawing depend on the
label. Four against four is a value of its own here, and a setting says what becomes of it. Only problems in words are
asked about: where there is an image, there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipelines.judges.ballots import SCHEMA, yes_or_no
from pipelines.policies.base import Policy
from pipelines.records import RLCandidate, Sample, SuitabilityLabel, SuitabilityVotes
from pipelines.records.votes import majority
from pipelines.rejects import Reason, RowFault
from pipelines.rl import candidates
from pipelines.rl.asking import turn_of
from pipelines.rl.shard import Refused, Shard
from pipelines.tables import TableKey
from pipelines.voting import poll

PROMPT = "suitability"
VOTES, LABELS = "suitability_votes", "suitability_labels"
Tie = Literal["yes", "no", "reject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suitability:
    """The votes: ``judge`` is asked ``n_votes`` times, or, to ``stop_early``, until the majority is certain."""

    judge: Policy
    n_votes: int = 8
    stop_early: bool = False

    asset: ClassVar[str] = VOTES
    kind: ClassVar[type[SuitabilityVotes]] = SuitabilityVotes
    roles: ClassVar[Sequence[str]] = ("judge",)

    @property
    def settings(self) -> Mapping[str, Any]:
        """For the digest of the inputs and the card."""
        return {"n_votes": self.n_votes, "stop_early": self.stop_early}

    def upstream(self, shard: Shard) -> Sequence[TableKey]:
        """The candidates."""
        return (shard.key(candidates.ASSET),)

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, RLCandidate]]:
        """The problems in words."""
        found = shard.joined(candidates.ASSET, RLCandidate)
        return [(sample, row) for sample, row in found if not sample.images and not sample.videos]

    async def measure(self, sample: Sample, row: RLCandidate, shard: Shard) -> SuitabilityVotes | Refused:
        """The votes on one problem."""
        turn = turn_of(sample, PROMPT, schema=SCHEMA)
        verdict = majority if self.stop_early else None
        votes = await poll(self.judge, turn, yes_or_no, n_votes=self.n_votes, verdict=verdict, what=PROMPT)
        found = SuitabilityVotes(sample.sample_id, votes)
        if votes.n_invalid == votes.n:
            return Refused(RowFault(Reason.NO_VOTE, f"none of {votes.n} answers is a vote"), found)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitabilityLabels:
    """What the votes come to; ``tie`` says what as many votes on either side are taken for."""

    tie: Tie = "no"

    asset: ClassVar[str] = LABELS
    kind: ClassVar[type[SuitabilityLabel]] = SuitabilityLabel
    roles: ClassVar[Sequence[str]] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """For the digest of the inputs and the card."""
        return {"tie": self.tie}

    def upstream(self, shard: Shard) -> Sequence[TableKey]:
        """The votes."""
        return (shard.key(VOTES),)

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, SuitabilityVotes]]:
        """All of them."""
        return shard.joined(VOTES, SuitabilityVotes)

    async def measure(self, sample: Sample, row: SuitabilityVotes, shard: Shard) -> SuitabilityLabel | Refused:
        """The majority."""
        votes = row.votes
        side = self.tie if votes.majority == "tie" else votes.majority
        if side == "reject":
            return Refused(RowFault(Reason.TIED, f"{votes.n_yes} say yes and {votes.n_no} say no"), row)
        return SuitabilityLabel(
            sample_id=sample.sample_id,
            suitable=side == "yes",
            majority=votes.majority,
            n_yes=votes.n_yes,
            n_no=votes.n_no,
            n_invalid=votes.n_invalid,
            judge=votes.judge,
        )
