"""Whether a row needs its image and its tools, with policies that know, see, or guess."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pipelines.generation.recipes import load_recipes
from pipelines.models.policies import (
    CompletionRequest,
    OraclePolicy,
    PolicyError,
    RecordedPolicy,
    oracle_policy,
    oracle_script,
)
from pipelines.records import Truth, VideoRef
from pipelines.records.reject_reasons import Reason, RowError
from pipelines.storage.ledger import Ledger
from pipelines.verification.checks import BlindScores, Necessity, blind_scores
from pipelines.verification.checks.necessity import necessity_checks
from tests.pipelines.scripted import Scripted


def sees(case, said: str = "<answer>STOP</answer>"):
    """A policy that answers from the image and has no idea without it."""
    whole = case.sample.images[0].sha256
    return Scripted(lambda turn: said if turn.task.images[0].sha256 == whole else "<answer>no idea</answer>")


def measured(case, policy, k=4) -> BlindScores:
    return asyncio.run(blind_scores(case, policy, k=k))


def judged(case, n_blind, n_without_tools, **limits):
    return necessity_checks(BlindScores(4, n_blind, n_without_tools), Necessity(**limits))


def test_both_scores_are_measured(make_case):
    case = make_case()
    scores = measured(case, sees(case))
    assert (scores.n_blind, scores.n_without_tools, scores.usage.cost_usd) == (0, 4, 4.0)


def test_a_policy_that_knows_the_answer_needs_no_image(make_case):
    scores = measured(make_case(), Scripted(lambda turn: "<answer>STOP</answer>"))
    assert (scores.n_blind, scores.n_without_tools) == (4, 4)


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
    assert measured(case, sees(case, said)).n_without_tools == 4 * right


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
def test_the_checks_fail_for_what_was_answered_too_often_and_keep_the_counts(
    make_case, n_blind, n_without_tools, flaws
):
    found = judged(make_case(), n_blind, n_without_tools)
    assert [check.name for check in found] == ["needs_image", "needs_tools"]
    assert [check.reason for check in found] == flaws
    assert [check.score for check in found] == [n_blind / 4, n_without_tools / 4]
    assert [check.n_trials for check in found] == [4, 4]
    assert found[0].detail == f"{n_blind} of 4 answers to a blank image are right"


@pytest.mark.parametrize(("most", "reason"), [(1.0, ""), (0.75, "answerable_blind"), (None, "")])
def test_the_bounds_are_settings_and_without_one_nothing_is_taken_out(make_case, most, reason):
    assert judged(make_case(), 4, 0, max_blind=most)[0].reason == reason


def test_a_question_without_an_image_is_asked_without_tools_only(make_case):
    case = make_case()
    bare = replace(case, sample=replace(case.sample, images=()), trajectory=replace(case.trajectory, images=()))
    scores = measured(bare, Scripted(lambda turn: "STOP"))
    assert (scores.n_blind, scores.n_without_tools) == (None, 4)
    assert [check.name for check in necessity_checks(scores, Necessity())] == ["needs_tools"]


def test_of_a_video_nothing_is_seen_without_tools_so_it_is_asked_blind_only(make_case):
    video = VideoRef("f" * 64, "mp4", 160, 120, 24, 8.0)
    case = make_case(videos=(video,), images=())
    bare = replace(case, trajectory=replace(case.trajectory, images=()))
    scores = measured(bare, Scripted(lambda turn: "STOP"))
    assert (scores.n_blind, scores.n_without_tools) == (4, None)


def test_what_a_recipe_made_of_the_image_is_what_is_shown(make_case, store, make_image):
    case = make_case()
    turned = store.add_pixels(make_image(4, 640, 480))
    policy = Scripted(lambda turn: "")
    measured(replace(case, trajectory=replace(case.trajectory, images=(turned,))), policy, k=1)
    assert turned in {turn.task.images[0] for turn in policy.turns}
    assert case.sample.images[0] not in {turn.task.images[0] for turn in policy.turns}


def test_an_answer_that_cannot_be_had_is_that_rows_error(make_case):
    def give_up(turn: CompletionRequest) -> str:
        raise PolicyError("HTTP 503")

    with pytest.raises(RowError) as error:
        measured(make_case(), Scripted(give_up))
    assert error.value.reason is Reason.POLICY_FAILED


def test_no_answer_at_all_measures_nothing():
    with pytest.raises(ValueError, match="k = 0"):
        Necessity(k=0)


def embedded(case):
    recipe = load_recipes()["crop"]
    return measured(case, oracle_policy(recipe.family, revision="1"))


def test_the_embedded_policy_sees_what_is_large_and_nothing_in_a_blank_image(make_case):
    scores = embedded(make_case())
    assert (scores.n_blind, scores.n_without_tools) == (0, 4)


def test_the_embedded_policy_misses_what_is_tiny_or_altered(make_case, store, make_image):
    case = make_case()
    turned = replace(case, trajectory=replace(case.trajectory, images=(store.add_pixels(make_image(4)),)))
    assert embedded(turned).n_without_tools == 0
    dim = replace(case, sample=replace(case.sample, truth=Truth(contrast=0.1)))
    assert embedded(dim).n_without_tools == 0


def test_the_embedded_policy_guesses_among_choices_and_differently_each_time(make_case):
    case = make_case(choices=("A. stop", "B. go", "C. wait", "D. turn"))
    sample = replace(case.sample, answer="A")
    scores = asyncio.run(
        blind_scores(replace(case, sample=sample), OraclePolicy(oracle_script("crop"), revision="1"), k=40)
    )
    assert scores.n_blind is not None
    assert 3 <= scores.n_blind <= 20
