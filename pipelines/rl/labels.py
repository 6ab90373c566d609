"""Labels that can be trusted: a judge answers every question again (CodeV, §5.1), and where most answers differ a
person decides (``annotation/queues/verification.py``), by the table ``verifications`` of the sample's source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from darkroom.pipelines.generation.stage import SAMPLES, Rejection, Shard, Stage
from darkroom.pipelines.models.policies.policy import Policy
from darkroom.pipelines.models.self_consistency import collect_votes
from darkroom.pipelines.records import CheckedLabel, RLCandidate, Sample, Verification
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.rl import candidates
from darkroom.pipelines.rl.candidates import GRADING_CODE, graded, turn_of
from darkroom.pipelines.storage.tables import TableKey, Tables

ASSET = "checked_labels"
PROMPT = "relabel"
VERIFICATIONS = ("verifications",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLabels(Stage[Sample, RLCandidate, CheckedLabel]):
    """``judge`` answers ``n_answers`` times; the label stands when more than half of them are the label."""

    judge: Policy
    n_answers: int = 4
    stop_early: bool = False
    said: Mapping[str, Verification] = field(default_factory=dict)
    """What people said, by sample."""

    asset: ClassVar[str] = ASSET
    kind: ClassVar[type[CheckedLabel]] = CheckedLabel
    code: ClassVar[Sequence[str]] = (__name__, *GRADING_CODE)
    reads: ClassVar[Sequence[str]] = (*SAMPLES, candidates.ASSET)
    roles: ClassVar[Sequence[str]] = ("judge",)

    @property
    def settings(self) -> Mapping[str, Any]:
        verdicts = sorted([row.sample_id, row.verdict, row.reviewer] for row in self.said.values())
        return {"n_answers": self.n_answers, "stop_early": self.stop_early, "verifications": verdicts}

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, RLCandidate]]:
        """Every candidate but those about a video, which no judge is shown."""
        return [(sample, row) for sample, row in shard.joined(candidates.ASSET, RLCandidate) if not sample.videos]

    async def measure(self, sample: Sample, row: RLCandidate) -> CheckedLabel | Rejection:
        """The judge's answers against the label, then people's word."""
        turn, read = turn_of(sample, PROMPT), graded(sample, row.grader, self.judge)
        verdict = self._stands if self.stop_early else None
        votes = await collect_votes(self.judge, turn, read, n_votes=self.n_answers, verdict=verdict, what=PROMPT)
        verified = self.said.get(sample.sample_id)
        label = CheckedLabel(sample.sample_id, votes, verified.reviewer if verified else "")
        if verified is not None and verified.verdict == "mismatch":
            evidence = f"{verified.reviewer} says that image, question and answer do not match: {verified.comment}"
            return Rejection(RowError(Reason.WRONG_LABEL, evidence), label)
        if (verified is not None and verified.verdict == "match") or self._stands(votes.n_yes, votes.n_no):
            return label
        answers = ", ".join(dict.fromkeys(answer for answer in votes.reasons if answer))
        evidence = f"the label is {sample.answer!r}; {votes.n_yes} of {votes.n} answers are: {answers}"
        return Rejection(RowError(Reason.LABEL_DISPUTED, evidence), label)

    def _stands(self, n_yes: int, n_no: int) -> bool:
        """Share of all requested answers: an invalid one does not confirm the label."""
        return 2 * n_yes > self.n_answers


def read_verifications(tables: Tables, sources: Sequence[str]) -> dict[str, Verification]:
    keys = tables.existing(TableKey(VERIFICATIONS, source) for source in sources)
    return {row.sample_id: row for key in keys for row in tables.read(key, Verification)}


def disputed(tables: Tables, key: TableKey) -> dict[str, str]:
    """The samples of one shard whose label waits for a person, with what was found."""
    rejects = tables.read_rejects(key)
    return {reject.sample_id: reject.evidence for reject in rejects if reject.reason == Reason.LABEL_DISPUTED}
