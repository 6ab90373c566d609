"""Tool necessity as a prior: how often the model is right when it must use its tools, and when it must not.

Four rollouts with the tool forced, four with it forbidden (Look Less, Reason More, §4.2.1, eq. 4). The counts order
and balance rows only: rewards need estimates made while training (§5.3.3: 74.9 against 72.1).
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar, Literal

from darkroom import sandbox
from darkroom.pipelines.generation.rollout import rollout
from darkroom.pipelines.generation.sandbox_sessions import RecordedGroup, Sandboxes
from darkroom.pipelines.generation.stage import SAMPLES, Shard, Stage
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, Policy
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.protocols.protocol import Protocol
from darkroom.pipelines.models.self_consistency import Vote, collect_votes
from darkroom.pipelines.models.tasks import Task, image_names, question_text
from darkroom.pipelines.records import PassRate, RLCandidate, Sample, ToolNecessity, Votes
from darkroom.pipelines.records.digest import digest, seed_from
from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.rl import candidates, pass_rates
from darkroom.pipelines.rl.candidates import GRADING_CODE, ballot_of

ASSET = "tool_necessity"
MAX_ROUNDS = 4
Mode = Literal["forced", "forbidden"]
MODES: tuple[Mode, ...] = ("forced", "forbidden")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNecessities(Stage[Sample, RLCandidate, ToolNecessity]):
    """``student`` is rolled out ``n_forced`` and ``n_forbidden`` times; ``judge`` grades free text."""

    student: Policy
    sandboxes: Sandboxes
    judge: Policy | None = None
    n_forced: int = 4
    n_forbidden: int = 4
    protocol: Protocol = ToolCall()

    asset: ClassVar[str] = ASSET
    kind: ClassVar[type[ToolNecessity]] = ToolNecessity
    code: ClassVar[Sequence[str]] = (
        __name__,
        "darkroom.pipelines.generation.rollout",
        "darkroom.pipelines.generation.sandbox_sessions",
        *GRADING_CODE,
    )
    reads: ClassVar[Sequence[str]] = (*SAMPLES, candidates.ASSET, pass_rates.ASSET)
    roles: ClassVar[Sequence[str]] = ("student", "judge")

    @property
    def settings(self) -> Mapping[str, Any]:
        digests = {"protocol": self.protocol.name, "sandbox": sandbox.sandbox_digest(self.sandboxes.limits)}
        return {"n_forced": self.n_forced, "n_forbidden": self.n_forbidden, **digests}

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, RLCandidate]]:
        """The rows with images whose pass rate leaves something to learn."""
        rated = {row.sample_id for _, row in shard.joined(pass_rates.ASSET, PassRate)}
        rows = shard.joined(candidates.ASSET, RLCandidate)
        return [(sample, row) for sample, row in rows if row.sample_id in rated and sample.images]

    async def measure(self, sample: Sample, row: RLCandidate) -> ToolNecessity:
        forced = await self._votes(sample, row, "forced", self.n_forced)
        return ToolNecessity(sample.sample_id, forced, await self._votes(sample, row, "forbidden", self.n_forbidden))

    async def _votes(self, sample: Sample, row: RLCandidate, mode: Mode, n: int) -> Votes:
        opening = self.protocol.opening(question_text(sample), sample.images, mode=mode)
        row_id = digest([ASSET, mode, sample.sample_id])
        seed = necessity_seed(mode, sample.sample_id)
        task = Task(row_id, ASSET, sample, sample.images, hint={}, opening=opening, seed=seed, mode=mode)
        request, numbers = CompletionRequest(task.opening, self.protocol.stop, task.seed, task), count()
        async with self.sandboxes.group(sample.images, names=image_names(sample.question)) as group:

            def read(opening: Completion) -> Awaitable[Vote]:
                return self._ballot(replace(task, seed=task.seed + next(numbers)), opening, row, group)

            return await collect_votes(self.student, request, read, n_votes=n, what=f"tool necessity, {mode}")

    async def _ballot(self, task: Task, opening: Completion, row: RLCandidate, group: RecordedGroup) -> Vote:
        """No vote where there is no answer, and where tools were not used as they had to be."""
        async with group.session(seed=task.seed) as session:
            n = MAX_ROUNDS if task.mode == "forced" else 0
            rolled_out = await rollout(
                task, policy=self.student, protocol=self.protocol, session=session, max_rounds=n, opening=opening
            )
        usage = rolled_out.usage - opening.usage
        if (error := rolled_out.error) is not None:
            if error.reason in (Reason.POLICY_FAILED, Reason.SANDBOX_FAILED):
                raise error
            return Vote(None, str(error), usage)
        if task.mode == "forced" and not rolled_out.rounds:
            return Vote(None, f"no tool was used: {rolled_out.answer}", usage)
        vote = await ballot_of(rolled_out.answer, task.sample, row.grader, self.judge)
        return vote._replace(usage=vote.usage + usage)


def necessity_seed(mode: Mode, sample_id: str) -> int:
    """The seed of the first rollout; those of the others follow it."""
    return seed_from("rl", ASSET, mode, sample_id)
