"""A judge that is a policy: k votes with k seeds, each a structured answer, all on the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.cases import Case
from pipelines.digest import seed_from
from pipelines.judges.ballots import SCHEMA, yes_or_no
from pipelines.judges.base import Question
from pipelines.messages import Picture, message
from pipelines.policies.base import Policy, Turn
from pipelines.records import ImageRef, Votes
from pipelines.tasks import Task
from pipelines.voting import poll


class PolicyJudge:
    """Asks ``policy`` ``n_votes`` times. A vote that is no answer counts as invalid, which is not a yes."""

    def __init__(self, policy: Policy, *, n_votes: int = 1) -> None:
        self._policy, self._n_votes = policy, n_votes

    @property
    def identity(self) -> Mapping[str, Any]:
        """The policy's, and the number of votes."""
        return {**self._policy.identity.as_json(), "n_votes": self._n_votes}

    async def ask(
        self, question: Question, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The votes, asked for at once."""
        system, user = question.prompt.render(**slots)
        messages = (message("system", system), message("user", *map(Picture, images), user))
        row = case.trajectory.trajectory_id
        task = Task(row, question.name, case.sample, (), {}, messages, judge_seed(question.name, row))
        turn = Turn(messages, (), task.seed, task, schema=SCHEMA)
        return await poll(self._policy, turn, yes_or_no, n_votes=self._n_votes, what="judge")


def judge_seed(question: str, row: str) -> int:
    """The seed of the first vote on a row; those of the others follow it."""
    return seed_from("judge", question, row)
