"""Whether a row needs its image and its tools, with policies that know, see, or guess."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pipelines.checks import BlindScores, blind_scores, necessity
from pipelines.ledger import Ledger
from pipelines.policies import Completion, Identity, PolicyFault, RecordedPolicy, Turn
from pipelines.records import Usage
from pipelines.rejects import Reason, RowFault


class Scripted:
    """A policy that answers what it is told to: a fake only where money would be spent."""

    concurrency = 4

    def __init__(self, answer: Callable[[Turn], str]) -> None:
        self.identity = Identity("scripted", "scripted")
        self._answer = answer
        self.turns: list[Turn] = []

    async def check(self) -> None:
        pass

    async def write(self, turn: Turn) -> Completion:
        self.turns.append(turn)
        return Completion(self._answer(turn), usage=Usage(calls=1, cost_usd=0.5))

    async def close(self) -> None:
        pass


def sees(case, said: str = "<answer>STOP</answer>"):
    """A policy that answers from the image and has no idea without it."""
    whole = case.sample.images[0].sha256
    return Scripted(lambda turn: said if turn.task.images[0].sha256 == whole else "<answer>no idea</answer>")


def measured(case, policy, k=4) -> BlindScores:
    return asyncio.run(blind_scores(case.sample, policy, case.store, k=k))


def test_both_scores_are_measured(make_case):
    case = make_case()
    scores = measured(case, sees(case))
    assert (scores.blind, scores.without_tools, scores.usage.cost_usd) == (0.0, 1.0, 4.0)


def test_a_policy_that_knows_the_answer_needs_no_image(make_case):
    scores = measured(make_case(), Scripted(lambda turn: "<answer>STOP</answer>"))
    assert (scores.blind, scores.without_tools) == (1.0, 1.0)


def test_the_blank_image_has_the_same_size_and_one_colour(make_case, store):
    case = make_case()
    policy = sees(case)
    measured(case, policy, k=2)
    shown = {turn.task.images[0] for turn in policy.turns} - {case.sample.images[0]}
    assert [(image.width, image.height) for image in shown] == [(640, 480)]
    assert len(store.open(shown.pop()).getcolors()) == 1


def test_every_answer_has_a_seed_of_its_own(make_case):
    policy = Scripted(lambda turn: "")
    measured(make_case(), policy, k=5)
    assert len({turn.seed for turn in policy.turns}) == 10


def test_answers_are_on_the_ledger_and_paid_for_once(make_case, tmp_path):
    case = make_case()
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        first, second = sees(case), sees(case)
        once = measured(case, RecordedPolicy(first, ledger))
        again = measured(case, RecordedPolicy(second, ledger))
        assert (len(first.turns), len(second.turns)) == (8, 0)
        assert once == again
        assert ledger.totals()["policy"].acts == 8


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("STOP", 1.0),
        ("I guess <answer>go</answer>, no: <answer>STOP</answer>", 1.0),
        ("<answer>STOP", 1.0),
        ("", 0.0),
        ("It says STOP, I think", 0.0),
        ("<answer></answer>", 0.0),
    ],
)
def test_an_answer_is_read_tolerantly_and_graded_strictly(make_case, said, right):
    case = make_case()
    assert measured(case, sees(case, said)).without_tools == right


@pytest.mark.parametrize(
    ("n_blind", "n_without_tools", "flaws"),
    [
        (0, 0, ["", ""]),
        (2, 3, ["", ""]),
        (3, 3, ["answerable_blind", ""]),
        (0, 4, ["", "answerable_without_tools"]),
        (4, 4, ["answerable_blind", "answerable_without_tools"]),
    ],
)
def test_the_checks_read_the_scores_and_keep_them(make_case, n_blind, n_without_tools, flaws):
    case = make_case()
    checks = necessity({case.sample.sample_id: BlindScores(4, n_blind, n_without_tools)})
    found = [check(case) for check in checks]
    assert [check.name for check in found] == ["needs_image", "needs_tools"]
    assert [check.reason for check in found] == flaws
    assert [check.score for check in found] == [n_blind / 4, n_without_tools / 4]


def test_a_row_without_scores_is_not_passed(make_case):
    with pytest.raises(KeyError):
        necessity({})[0](make_case())


def test_a_sample_without_an_image_cannot_be_measured(make_case):
    with pytest.raises(RowFault) as fault:
        measured(make_case(images=()), Scripted(lambda turn: ""))
    assert fault.value.reason is Reason.NOT_APPLICABLE


def test_an_answer_that_cannot_be_had_is_that_rows_fault(make_case):
    def give_up(turn: Turn) -> str:
        raise PolicyFault("HTTP 503")

    with pytest.raises(RowFault) as fault:
        measured(make_case(), Scripted(give_up))
    assert fault.value.reason is Reason.POLICY_FAILED


def test_no_answer_at_all_measures_nothing(make_case):
    with pytest.raises(ValueError, match="k = 0"):
        measured(make_case(), Scripted(lambda turn: ""), k=0)
