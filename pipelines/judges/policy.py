"""A judge that is a policy: k votes with k seeds, each a structured answer, all on the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from pipelines.cases import Case
from pipelines.digest import seed_from
from pipelines.judges.base import Question, Votes
from pipelines.messages import Message, Picture, message
from pipelines.policies.base import Completion, Policy, PolicyFault, Turn
from pipelines.records import ImageRef, Usage
from pipelines.rejects import Reason, RowFault
from pipelines.structured import json_objects
from pipelines.tasks import Task

_MAX_REASON = 300


class _Answer(BaseModel):
    """What a vote must be, also as the JSON schema that the endpoint is sent."""

    reason: str = ""
    verdict: bool


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
        said = await asyncio.gather(*(self._vote(question, case, messages, n) for n in range(self._n_votes)))
        answers = [_answer(completion.text) for completion in said]
        n_yes = sum(answer is not None and answer.verdict for answer in answers)
        n_invalid = sum(answer is None for answer in answers)
        return Votes(
            judge=self._policy.identity.model,
            n_yes=n_yes,
            n_no=len(answers) - n_yes - n_invalid,
            n_invalid=n_invalid,
            reasons=tuple("" if answer is None else answer.reason[:_MAX_REASON] for answer in answers),
            usage=sum((completion.usage for completion in said), Usage()),
        )

    async def _vote(self, question: Question, case: Case, messages: tuple[Message, ...], n: int) -> Completion:
        trajectory = case.trajectory
        seed = seed_from("judge", question.name, trajectory.trajectory_id, n)
        task = Task(trajectory.trajectory_id, question.name, case.sample, (), {}, messages, seed)
        try:
            return await self._policy.write(Turn(messages, (), seed, task, schema=_Answer.model_json_schema()))
        except PolicyFault as fault:
            raise RowFault(Reason.POLICY_FAILED, f"judge: {fault}") from fault


def _answer(text: str) -> _Answer | None:
    """The last JSON object of a vote that is one; models reason first, and put fences around it."""
    for candidate in reversed(list(json_objects(text))):
        try:
            return _Answer.model_validate(candidate)
        except ValidationError:
            continue
    return None
