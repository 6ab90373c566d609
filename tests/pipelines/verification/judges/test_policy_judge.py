"""A policy as a judge: votes, seeds, invalid answers, and the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    PolicyError,
    PolicyIdentity,
    RecordedPolicy,
)
from darkroom.pipelines.models.prompts import load_prompt
from darkroom.pipelines.records import Usage, Votes
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.verification.judges import EmbeddedJudge, JudgeQuestion, PolicyJudge
from darkroom.pipelines.verification.judges.judge import SCHEMA, yes_or_no

YES, NO = '{"reason": "it can be read", "verdict": true}', '{"reason": "blurred", "verdict": false}'


class Voter:
    """A policy whose votes are written down: a fake where money would be spent."""

    concurrency = 8

    def __init__(self, vote: Callable[[int], str]) -> None:
        self.identity = PolicyIdentity("voter", "voter-1")
        self._vote = vote
        self.turns: list[CompletionRequest] = []

    async def check(self) -> None:
        pass

    async def write(self, turn: CompletionRequest) -> Completion:
        self.turns.append(turn)
        return Completion(self._vote(len(self.turns) - 1), usage=Usage(calls=1, prompt_tokens=7))

    async def close(self) -> None:
        pass


@pytest.fixture
def question(tmp_path: Path) -> JudgeQuestion:
    path = tmp_path / "effective.md"
    path.write_text(
        "---\nname: effective\nversion: 1\nslots: [question]\n---\n# system\nYou judge.\n# user\n{{ question }}\n"
    )
    return JudgeQuestion("effective", load_prompt(path), lambda case: case.trajectory.answer == "STOP")


def ask(voter: Voter, question: JudgeQuestion, case, n: int) -> Votes:
    return asyncio.run(PolicyJudge(voter, n_votes=n).ask(question, case, slots={"question": "Good?"}))


def test_votes_are_counted_with_their_reasons_and_their_cost(make_case, question):
    votes = ask(Voter(lambda n: YES if n < 3 else NO), question, make_case(), 4)
    assert (votes.n_yes, votes.n_no, votes.n_invalid, votes.share, votes.agreement) == (3, 1, 0, 0.75, 0.75)
    assert votes.reasons[0] == "it can be read"
    assert votes.usage == Usage(calls=4, prompt_tokens=28)


def test_every_vote_has_a_seed_of_its_own_and_asks_for_the_schema(make_case, question):
    voter = Voter(lambda n: YES)
    ask(voter, question, make_case(), 5)
    assert len({turn.seed for turn in voter.turns}) == 5
    assert all(turn.schema is not None and "verdict" in turn.schema["properties"] for turn in voter.turns)


@pytest.mark.parametrize(
    ("said", "share"),
    [
        (f"Let me think. ```json\n{YES}\n```", 1.0),
        ('The shape is {"verdict": true} but here: {"verdict": false}', 0.0),
        ('{"verdict": "true"}', 1.0),
        ('{"reason": {"deep": 1}, "verdict": true}', 0.0),
        ("yes", 0.0),
        ("", 0.0),
        ('{"verdict": ', 0.0),
        ("{" * 5000, 0.0),
        ('{"a":' * 3000, 0.0),
    ],
)
def test_a_vote_that_is_no_answer_is_invalid_and_never_a_yes(make_case, question, said, share):
    votes = ask(Voter(lambda n: said), question, make_case(), 1)
    assert votes.share == share
    if votes.n_invalid:
        assert votes.reasons == (f"no vote: {said!r}"[:300],)


def test_a_vote_that_is_no_answer_says_who_kept_it(make_case, question):
    odd = [Completion("", withheld="finish_reason 'content_filter'"), Completion('{"reason": "It', finished=False)]
    said = [yes_or_no(each).reason for each in odd]
    assert said == ["finish_reason 'content_filter': ''", 'cut off by the token limit: \'{"reason": "It\'']


def test_a_judge_that_cannot_be_had_is_the_rows_error_and_retryable(make_case, question):
    class Broken(Voter):
        async def write(self, turn: CompletionRequest) -> Completion:
            raise PolicyError("HTTP 503")

    with pytest.raises(RowError, match="policy_failed: judge: HTTP 503"):
        ask(Broken(lambda n: YES), question, make_case(), 2)


def test_votes_are_paid_for_once(make_case, question, tmp_path):
    voter = Voter(lambda n: YES)

    async def twice() -> None:
        with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:
            for _ in range(2):
                judge = PolicyJudge(RecordedPolicy(voter, ledger), n_votes=3)
                votes = await judge.ask(question, make_case(), slots={"question": "Good?"})
                assert votes.n_yes == 3

    asyncio.run(twice())
    assert len(voter.turns) == 3


def test_the_embedded_judge_votes_once_by_the_rule(make_case, question):
    case = make_case()
    votes = asyncio.run(EmbeddedJudge().ask(question, case, slots={"question": "Good?"}))
    assert (votes.judge, votes.n, votes.n_yes) == ("embedded", 1, int(case.trajectory.answer == "STOP"))


def test_the_schema_of_a_vote_stays_because_it_is_part_of_the_ledgers_keys():
    assert digest(SCHEMA) == "024be71c79c3ec4e27e6e949fab561cc0b2042b2c756713dad72412b4f8b6658"
