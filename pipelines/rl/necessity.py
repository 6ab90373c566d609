"""Tool necessity as a prior: how often the model is right when it must use its tools, and when it must not.

Four rollouts with the tool forced, four with it forbidden (Look Less, Reason More, §4.2.1, eq. 4). The paper shows that
a necessity that was estimated once, before training, makes a worse model than one that is estimated again all the time
(§5.3.3: 72.1 against 74.9): these counts order and balance rows, no reward is computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import sandbox
from pipelines.digest import digest, seed_from
from pipelines.execution import RecordedGroup, Sandboxes
from pipelines.policies.base import Completion, Policy, PolicyFault, Turn
from pipelines.policies.samples import samples
from pipelines.protocols import ToolCall
from pipelines.protocols.base import Protocol
from pipelines.records import PassRate, RLCandidate, Sample, ToolNecessity, Usage, Votes
from pipelines.rejects import Reason, RowFault
from pipelines.rl import candidates, pass_rates
from pipelines.rl.asking import ballot_of
from pipelines.rl.shard import Shard
from pipelines.rollout import Rollout, rollout
from pipelines.tables import TableKey
from pipelines.tasks import Task, question_text
from pipelines.voting import Ballot

ASSET = "tool_necessity"
MAX_ROUNDS = 4
Mode = Literal["forced", "forbidden"]
MODES: tuple[Mode, ...] = ("forced", "forbidden")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNecessities:
    """``student`` is rolled out ``n_forced`` and ``n_forbidden`` times; ``judge`` grades free text."""

    student: Policy
    sandboxes: Sandboxes
    judge: Policy | None = None
    n_forced: int = 4
    n_forbidden: int = 4
    protocol: Protocol = ToolCall()

    asset: ClassVar[str] = ASSET
    kind: ClassVar[type[ToolNecessity]] = ToolNecessity
    roles: ClassVar[Sequence[str]] = ("student", "judge")

    @property
    def settings(self) -> Mapping[str, Any]:
        """For the digest of the inputs and the card."""
        return {
            "n_forced": self.n_forced,
            "n_forbidden": self.n_forbidden,
            "protocol": self.protocol.name,
            "sandbox": sandbox.sandbox_digest(self.sandboxes.limits),
        }

    def upstream(self, shard: Shard) -> Sequence[TableKey]:
        """The pass rates, and the candidates with their graders."""
        return (shard.key(candidates.ASSET), shard.key(pass_rates.ASSET))

    def rows(self, shard: Shard) -> Sequence[tuple[Sample, RLCandidate]]:
        """The rows with images whose pass rate leaves something to learn."""
        left = {row.sample_id for _, row in shard.joined(pass_rates.ASSET, PassRate)}
        found = shard.joined(candidates.ASSET, RLCandidate)
        return [(sample, row) for sample, row in found if row.sample_id in left and sample.images]

    async def measure(self, sample: Sample, row: RLCandidate, shard: Shard) -> ToolNecessity:
        """Both kinds of rollouts."""
        forced = await self._votes(sample, row, "forced", self.n_forced)
        forbidden = await self._votes(sample, row, "forbidden", self.n_forbidden)
        return ToolNecessity(sample.sample_id, forced, forbidden)

    async def _votes(self, sample: Sample, row: RLCandidate, mode: Mode, n: int) -> Votes:
        task = _task(sample, mode, self.protocol)
        try:
            openings = await samples(self.student, Turn(task.opening, self.protocol.stop, task.seed, task), n)
        except PolicyFault as fault:
            raise RowFault(Reason.POLICY_FAILED, f"tool necessity, {mode}: {fault}") from fault
        async with self.sandboxes.group(sample.images) as group:
            made = [await self._rolled_out(task, opening, number, group) for number, opening in enumerate(openings)]
        ballots = [await self._ballot(one, sample, row, mode) for one in made]
        return Votes(
            judge=self.student.identity.model,
            ballots=tuple(ballot.says for ballot in ballots),
            n_wanted=n,
            reasons=tuple(ballot.reason[:300] for ballot in ballots),
            usage=sum([one.usage for one in made] + [ballot.usage for ballot in ballots], Usage()),
        )

    async def _rolled_out(self, task: Task, opening: Completion, number: int, group: RecordedGroup) -> Rollout:
        task = replace(task, seed=task.seed + number)
        async with group.session(seed=task.seed) as session:
            made = await rollout(
                task,
                policy=self.student,
                protocol=self.protocol,
                session=session,
                max_rounds=MAX_ROUNDS if task.mode == "forced" else 0,
                opening=opening,
            )
        if made.fault is not None and made.fault.reason in (Reason.POLICY_FAILED, Reason.SANDBOX_FAILED):
            raise made.fault
        return made

    async def _ballot(self, made: Rollout, sample: Sample, row: RLCandidate, mode: Mode) -> Ballot:
        """No vote where there is no answer, and where tools were not used as they had to be."""
        if made.fault is not None:
            return Ballot(None, str(made.fault))
        if mode == "forced" and not made.rounds:
            return Ballot(None, f"no tool was used: {made.answer}")
        return await ballot_of(made.answer, sample, row.grader, self.judge)


def necessity_seed(mode: Mode, sample_id: str) -> int:
    """The seed of the first rollout; those of the others follow it."""
    return seed_from("rl", ASSET, mode, sample_id)


def _task(sample: Sample, mode: Mode, protocol: Protocol) -> Task:
    opening = protocol.opening(question_text(sample), sample.images, mode=mode)
    seed = necessity_seed(mode, sample.sample_id)
    row = digest([ASSET, mode, sample.sample_id])
    return Task(row, ASSET, sample, sample.images, {}, opening, seed, mode=mode)
