"""Pass rates: how often the model to be trained answers a question rightly (CodeV, §5.1 and appendix 9).

It answers eight times. Where more than nine in ten answers are right, all rollouts get the same reward and teach
nothing: the row is rejected. Rows that it never solves stay, and say so. The counts are kept of all, rejects too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from darkroom.pipelines.generation.stage import SAMPLES, Rejection, Shard, Stage
from darkroom.pipelines.models.policies.policy import Policy
from darkroom.pipelines.models.self_consistency import collect_votes
from darkroom.pipelines.records import CheckedLabel, PassRate, RLCandidate, Sample
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.rl import candidates, labels
from darkroom.pipelines.rl.candidates import GRADING_CODE, graded, turn_of

ASSET = PROMPT = "pass_rates"
Band = Literal["too easy", "never solved", "between"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRates(Stage[Sample, RLCandidate, PassRate]):
    """``student`` answers ``n_answers`` times; ``judge`` grades free text. Above ``max_rate`` a row is rejected; one
    that is never solved, only if ``drop_unsolved``. ``stop_early``: no further answers once it is certain which of the
    three a row is; its rate is then that of the answers that there are."""

    student: Policy
    judge: Policy | None = None
    n_answers: int = 8
    max_rate: float = 0.9
    drop_unsolved: bool = False
    stop_early: bool = False

    asset: ClassVar[str] = ASSET
    kind: ClassVar[type[PassRate]] = PassRate
    code: ClassVar[Sequence[str]] = (__name__, *GRADING_CODE)
    reads: ClassVar[Sequence[str]] = (*SAMPLES, candidates.ASSET, labels.ASSET)
    roles: ClassVar[Sequence[str]] = ("student", "judge")

    @property
    def settings(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("n_answers", "max_rate", "drop_unsolved", "stop_early")}

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, RLCandidate]]:
        """Every candidate whose label was checked."""
        checked = {row.sample_id for _, row in shard.joined(labels.ASSET, CheckedLabel)}
        rows = shard.joined(candidates.ASSET, RLCandidate)
        return [(sample, row) for sample, row in rows if row.sample_id in checked]

    async def measure(self, sample: Sample, row: RLCandidate) -> PassRate | Rejection:
        turn, read = turn_of(sample, "pass_rate"), graded(sample, row.grader, self.judge)
        verdict = self._band if self.stop_early else None
        votes = await collect_votes(self.student, turn, read, n_votes=self.n_answers, verdict=verdict, what="pass rate")
        band = self._band(votes.n_yes, votes.n_no + votes.n_invalid)
        pass_rate = PassRate(sample.sample_id, votes, band == "never solved")
        solved = f"{votes.n_yes} of {votes.n} answers of {votes.judge} are right"
        if band == "too easy":
            evidence = f"{solved}; above {self.max_rate:.0%} a row teaches nothing"
            return Rejection(RowError(Reason.TOO_EASY, evidence), pass_rate)
        if band == "never solved" and self.drop_unsolved:
            return Rejection(RowError(Reason.NEVER_SOLVED, solved), pass_rate)
        return pass_rate

    def _band(self, n_right: int, n_wrong: int) -> Band:
        """Share of all requested answers: an invalid one is not right, and counts."""
        if not n_right:
            return "never solved"
        return "too easy" if n_right / self.n_answers > self.max_rate else "between"
