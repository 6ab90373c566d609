"""Votes: voters of known accuracy, ties, and stops that never change a verdict."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.models.messages import message
from darkroom.pipelines.models.policies import Completion, CompletionRequest, PolicyError, RecordedPolicy
from darkroom.pipelines.models.self_consistency import Vote, collect_votes, is_certain
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Sample, Truth, Votes
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.records.rl import majority
from darkroom.pipelines.verification.judges.judge import yes_or_no
from tests.pipelines.scripted import Scripted


def binomial(n: int, k: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def ballot(said) -> Vote:
    return Vote({"yes": True, "no": False}.get(said.text), said.text)


def asked(policy, turn: CompletionRequest, n_votes: int, verdict: Callable[[int, int], object] | None = None) -> Votes:
    return asyncio.run(collect_votes(policy, turn, ballot, n_votes=n_votes, verdict=verdict))


@pytest.fixture(scope="module")
def turn() -> Callable[..., CompletionRequest]:
    """A question with a seed of its own."""
    sample = Sample("s", "", "", "", (), "?", (), "", Truth(), "")

    def make(seed: int = 0) -> CompletionRequest:
        said = (message("user", f"question {seed}"),)
        return CompletionRequest(said, (), seed, Task("t", "suitability", sample, (), {}, said, seed))

    return make


@pytest.mark.parametrize("n", [1, 3, 5, 8])
def test_the_error_of_a_majority_falls_as_the_binomial_says(turn, n):
    """Every way in which ``n`` voters can vote, each once, weighed by how likely it is."""
    majorities = {}
    for ways in itertools.product((True, False), repeat=n):
        policy = Scripted(lambda turn, ways=ways: "yes" if ways[turn.seed] else "no")
        majorities[ways] = asked(policy, turn(), n).majority
    for p in (0.6, 0.7, 0.9):
        found = Counter()
        for ways, verdict in majorities.items():
            found[verdict] += math.prod(p if yes else 1 - p for yes in ways)
        assert found["no"] == pytest.approx(sum(binomial(n, k, p) for k in range((n + 1) // 2)))
        assert found["tie"] == pytest.approx(binomial(n, n // 2, p) if n % 2 == 0 else 0)


def test_four_of_eight_is_a_value_of_its_own(turn):
    policy = Scripted(lambda turn: "yes" if turn.seed % 2 else "no")
    votes = asked(policy, turn(), 8)
    assert (votes.n_yes, votes.n_no, votes.majority, votes.says_yes) == (4, 4, "tie", False)


def test_an_answer_that_is_none_is_no_vote_on_either_side(turn):
    policy = Scripted(lambda turn: ["yes", "perhaps", "yes", "no", ""][turn.seed])
    votes = asked(policy, turn(), 5)
    assert votes.ballots == (True, None, True, False, None)
    assert (votes.majority, votes.agreement, votes.says_yes) == ("yes", 2 / 3, False)


@given(says=st.lists(st.sampled_from(["yes", "no", "?"]), min_size=1, max_size=9), most=st.sampled_from([0.5, 0.9]))
def test_stopping_early_never_changes_the_verdict(turn, says, most):
    for verdict in (majority, lambda n_yes, n_no: "all" if n_yes > most * len(says) else "none" if not n_yes else ""):
        policy = Scripted(lambda turn: says[turn.seed])
        early, whole = asked(policy, turn(), len(says), verdict), asked(policy, turn(), len(says))
        assert verdict(early.n_yes, early.n_no) == verdict(whole.n_yes, whole.n_no)
        assert early.ballots == whole.ballots[: early.n]
        assert early.n_saved == len(says) - early.n


def test_no_vote_is_asked_for_that_could_have_been_spared(turn):
    policy = Scripted(lambda turn: "yes")
    assert asked(policy, turn(), 8, majority).n == 5
    assert len(policy.turns) == 5


def test_a_verdict_is_certain_only_when_invalid_answers_cannot_change_it_either():
    assert is_certain(majority, 5, 0, 3)
    assert not is_certain(majority, 4, 0, 4)  # four no would be a tie
    assert not is_certain(lambda n_yes, n_no: n_yes + n_no >= 3, 2, 0, 2)  # both may be no answer


def test_votes_have_consecutive_seeds_and_are_paid_for_once(turn, ledger):
    policy = Scripted(lambda turn: "yes")
    recorded = RecordedPolicy(policy, ledger)
    asked(recorded, turn(70), 3)
    more = asked(recorded, turn(70), 8)
    assert sorted(one.seed for one in policy.turns) == list(range(70, 78))
    assert (more.n, recorded.n_written, recorded.spent.cost_usd) == (8, 8, 4.0)


def test_answers_that_were_had_are_kept_when_another_fails(turn, ledger):
    def answer(turn: CompletionRequest) -> str:
        if turn.seed == 2 and len(policy.turns) < 9:
            raise PolicyError("busy")
        return "yes"

    policy = Scripted(answer)
    recorded = RecordedPolicy(policy, ledger)
    with pytest.raises(RowError, match="policy_failed: vote: busy"):
        asked(recorded, turn(), 8)
    assert asked(recorded, turn(), 8).n_yes == 8
    assert len(policy.turns) == 9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"reason": "a triangle", "verdict": true}', True),
        ('Let me think.\n```json\n{"verdict": false}\n```', False),
        ('{"verdict": true} or rather {"verdict": false}', False),
        ("true", None),
        ('{"verdict": "maybe"}', None),
        ("", None),
    ],
)
def test_a_ballot_is_the_last_verdict_that_was_given(text, says):
    assert yes_or_no(Completion(text)).says is says
