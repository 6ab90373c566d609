"""Which samples may become RL prompts: their answers can be graded, and question and image belong together.

What costs nothing comes first: a grader that cannot tell the sample's answer from corrupted ones, a near-duplicate, a
row of a benchmark. Then a judge votes: does the question belong to these images (Thyme, §4.1), and can it be answered
from them without looking facts up (CodeV, §5.1, which takes OK-VQA out)?
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pipelines.checks.base import Flaw, record
from pipelines.checks.votes import by_votes
from pipelines.grading import grader_of, require_apart
from pipelines.judges.ballots import SCHEMA, yes_or_no
from pipelines.policies.base import Policy
from pipelines.records import Check, RLCandidate, Sample, Usage
from pipelines.rejects import Reason, RowFault
from pipelines.rl.asking import turn_of
from pipelines.rl.shard import Refused, Shard
from pipelines.screening import Screening
from pipelines.tables import TableKey
from pipelines.voting import poll

ASSET = "rl_candidates"
BELONGS_TOGETHER, SELF_CONTAINED = "belongs_together", "self_contained"
VERSION = 1
_FLAWS = {BELONGS_TOGETHER: Flaw.MISMATCHED, SELF_CONTAINED: Flaw.NEEDS_KNOWLEDGE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The selection, with the judge whose ``n_votes`` decide; a majority of yes lets a sample pass."""

    judge: Policy | None
    n_votes: int = 1
    screening: Screening | None = None
    faults: Callable[[], Mapping[str, RowFault]] = dict
    """What the screening finds of this shard's samples; asked only where the shard is worked on."""

    asset: ClassVar[str] = ASSET
    kind: ClassVar[type[RLCandidate]] = RLCandidate
    roles: ClassVar[Sequence[str]] = ("judge",)

    @property
    def settings(self) -> Mapping[str, Any]:
        """For the digest of the inputs and the card."""
        benchmarks = "" if self.screening is None else self.screening.fingerprint
        return {"n_votes": self.n_votes, "version": VERSION, "benchmarks": benchmarks}

    def upstream(self, shard: Shard) -> Sequence[TableKey]:
        """Nothing but the samples."""
        return ()

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, Sample]]:
        """Every sample."""
        return [(sample, sample) for sample in shard.samples().values()]

    async def measure(self, sample: Sample, row: Sample, shard: Shard) -> RLCandidate | Refused:
        """The grader, then the votes, as far as none says no."""
        if (fault := self.faults().get(sample.sample_id)) is not None:
            raise fault
        grader = grader_of(sample)
        await asyncio.to_thread(require_apart, sample, grader)
        checks: list[Check] = []
        usage = Usage()
        for name in self._asked(sample):
            check, paid = await self._screened(sample, name)
            usage += paid
            checks.append(check)
            found = RLCandidate(sample.sample_id, grader, tuple(checks), usage)
            if not check.passed:
                return Refused(RowFault(Reason.CHECK_FAILED, check.detail), found, check.name)
        return RLCandidate(sample.sample_id, grader, tuple(checks), usage)

    def _asked(self, sample: Sample) -> Sequence[str]:
        """A judge is shown pictures: of a video it could say nothing, and a text is about nothing else."""
        if self.judge is None or sample.videos:
            return ()
        return (BELONGS_TOGETHER, SELF_CONTAINED) if sample.images else ()

    async def _screened(self, sample: Sample, name: str) -> tuple[Check, Usage]:
        assert self.judge is not None
        turn = turn_of(sample, name, schema=SCHEMA)
        votes = await poll(self.judge, turn, yes_or_no, n_votes=self.n_votes, what=name)
        return record(by_votes(votes, _FLAWS[name]), name=name, version=VERSION), votes.usage
