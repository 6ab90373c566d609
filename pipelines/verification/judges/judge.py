"""A judge answers a yes-or-no question about a case, in votes.

A question is a prompt file and, for the embedded judge, a rule that measures the same on pixels and text. Rows that the
embedded judge accepted are marked as such, like rows that the oracle wrote. A judge that is a policy gives k votes with
k seeds, each a structured answer, all on the ledger.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from darkroom.pipelines.models.messages import opening_messages
from darkroom.pipelines.models.parsing import json_objects
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest, Policy
from darkroom.pipelines.models.prompts import Prompt
from darkroom.pipelines.models.self_consistency import Vote, collect_votes
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import ImageRef, Sample, Usage, Votes
from darkroom.pipelines.records.digest import seed_from
from darkroom.pipelines.verification.case import Case


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """A question with the answer yes or no. The prompt's slots are what ``Judge.ask`` is given."""

    name: str
    prompt: Prompt
    rule: Callable[[Case], bool]
    """The embedded judge's opinion: measured, deterministic, without a model."""


class Judge(typing.Protocol):
    """Answers questions."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that determines its answers, besides the question."""

    async def ask(
        self, question: JudgeQuestion, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The votes. ``images`` are shown before the text, in their order. Raises ``RowError`` when none can be had."""


class EmbeddedJudge:
    """Answers by the question's rule: one vote, no model, no cost."""

    identity: Mapping[str, Any] = {"policy": "embedded"}

    async def ask(self, question: JudgeQuestion, case: Case, **_: Any) -> Votes:
        return Votes("embedded", (question.rule(case),), n_wanted=1)


class CountedJudge:
    """``judge``, with the calibrated threshold of each question (by name), and the usage of all its votes so far."""

    def __init__(self, judge: Judge, thresholds: Mapping[str, float] | None = None) -> None:
        self._judge, self._thresholds = judge, thresholds or {}
        self.usage = Usage()

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._judge.identity

    async def ask(self, question: JudgeQuestion, case: Case, **shown: Any) -> Votes:
        """The inner judge's votes, with the threshold."""
        votes = await self._judge.ask(question, case, **shown)
        self.usage += votes.usage
        return replace(votes, threshold=self._thresholds.get(question.name))


class YesOrNo(BaseModel):
    """What a vote must be, also as the JSON schema that the endpoint is sent."""

    reason: str = ""
    verdict: bool


SCHEMA = YesOrNo.model_json_schema()
_Vote = TypeVar("_Vote", bound=BaseModel)


def yes_or_no(completion: Completion) -> Vote:
    """The vote in a completion; invalid where there is none."""
    vote = last_vote(completion.text, YesOrNo)
    cut = "no vote" if completion.finished else "cut off by the token limit"
    return Vote(vote.verdict, vote.reason) if vote else Vote(None, f"{completion.withheld or cut}: {completion.text!r}")


def last_vote(text: str, form: type[_Vote]) -> _Vote | None:
    """The last JSON object of this form in ``text``: models reason first, and put fences around it."""
    for candidate in reversed(list(json_objects(text))):
        try:
            return form.model_validate(candidate)
        except ValidationError:
            continue
    return None


def judge_turn(
    prompt: Prompt,
    slots: Mapping[str, Any],
    sample: Sample,
    *,
    row: str,
    seed: int,
    images: tuple[ImageRef, ...] = (),
    schema: Mapping[str, Any] = SCHEMA,
) -> CompletionRequest:
    """A question to a judge about ``row``: the filled prompt after the images. ``seed`` is the first vote's."""
    system, user = prompt.render(**slots)
    messages = opening_messages(system, images, user)
    task = Task(row, prompt.name, sample, images, hint={}, opening=messages, seed=seed)
    return CompletionRequest(messages, (), seed, task, schema=schema)


class PolicyJudge:
    """Asks ``policy`` ``n_votes`` times. A vote that is no answer counts as invalid, which is not a yes."""

    def __init__(self, policy: Policy, *, n_votes: int = 1) -> None:
        self._policy, self._n_votes = policy, n_votes

    @property
    def identity(self) -> Mapping[str, Any]:
        """The policy's, and the number of votes."""
        return {**self._policy.identity.as_json(), "n_votes": self._n_votes}

    async def ask(
        self, question: JudgeQuestion, case: Case, *, slots: Mapping[str, Any], images: tuple[ImageRef, ...] = ()
    ) -> Votes:
        """The votes, asked for at once."""
        row = case.trajectory.trajectory_id
        seed = judge_seed(question.name, row)
        turn = judge_turn(question.prompt, slots, case.sample, row=row, seed=seed, images=images)
        return await collect_votes(self._policy, turn, yes_or_no, n_votes=self._n_votes, what="judge")


def judge_seed(question: str, row: str) -> int:
    """The seed of the first vote on a row; those of the others follow it."""
    return seed_from("judge", question, row)
