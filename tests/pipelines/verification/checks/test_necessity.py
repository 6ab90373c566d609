"""Whether a row needs its image and its tools, with policies that know, see, or guess."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace

import pytest

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.models.policies import (
    CompletionRequest,
    OraclePolicy,
    PolicyError,
    RecordedPolicy,
    oracle_policy,
    oracle_script,
)
from darkroom.pipelines.records import Truth, TruthBox, VideoRef
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.ledger import Ledger
from darkroom.pipelines.verification.checks import BlindScores, Necessity, blind_scores
from darkroom.pipelines.verification.checks.necessity import (
    answer_seed,
    error_rates_in_words,
    guessing_rate,
    necessity_checks,
)
from darkroom.pipelines.verification.proportion import SequentialTest
from tests.pipelines.scripted import Scripted


def sees(case, said: str = "<answer>STOP</answer>"):
    """A policy that answers from the image and has no idea without it."""
    whole = case.sample.images[0].sha256
    return Scripted(lambda turn: said if turn.task.images[0].sha256 == whole else "<answer>no idea</answer>")


def measured(case, policy, k=4) -> BlindScores:
    return asyncio.run(blind_scores(case, policy, Necessity(k=k)))


def judged(case, n_blind, n_without_tools, **limits):
    return necessity_checks(BlindScores(4, n_blind, n_without_tools), Necessity(**limits))


def test_both_scores_are_measured(make_case):
    case = make_case()
    scores = measured(case, sees(case))
    assert (scores.n_blind, scores.n_blind_asked, scores.n_without_tools, scores.usage.cost_usd) == (0, 5, 4, 4.5)


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
    assert len({turn.seed for turn in policy.turns}) == len(policy.turns) == 10


def test_answers_are_on_the_ledger_and_paid_for_once(make_case, tmp_path):
    case = make_case()
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        first, second = sees(case), sees(case)
        once = measured(case, RecordedPolicy(first, ledger))
        again = measured(case, RecordedPolicy(second, ledger))
        assert (len(first.turns), len(second.turns)) == (9, 0)
        assert once == again
        assert ledger.totals()["policy"].calls == 9


def test_what_a_ledger_of_four_answers_holds_is_not_paid_again(make_case, tmp_path):
    """The fixed number of before is the beginning of the test's: its answers count, and only further ones are paid."""
    case, measured_only = make_case(), Necessity(max_blind=None)
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        before, now = sees(case), sees(case)
        asyncio.run(blind_scores(case, RecordedPolicy(before, ledger), measured_only))
        scores = measured(case, RecordedPolicy(now, ledger))
    assert (len(before.turns), len(now.turns), scores.n_blind_asked) == (8, 1, 5)


def test_more_blind_answers_are_asked_for_only_where_undecided(make_case):
    case = make_case()
    whole = case.sample.images[0].sha256
    first = answer_seed("blind", case.sample.sample_id)

    def every_other(turn: CompletionRequest) -> str:
        is_right = turn.task.images[0].sha256 == whole or (turn.seed - first) % 2
        return "<answer>STOP</answer>" if is_right else "<answer>no idea</answer>"

    policy = Scripted(every_other)
    scores = measured(case, policy)
    asked = sorted(turn.seed - first for turn in policy.turns if turn.task.images[0].sha256 != whole)
    assert asked == list(range(scores.n_blind_asked))
    assert (scores.n_blind, scores.n_blind_asked, scores.n_without_tools) == (5, 10, 4)
    assert necessity_checks(scores, Necessity())[0].reason == "answerable_blind"
    assert measured(case, Scripted(lambda turn: "<answer>STOP</answer>")).n_blind_asked == 4


def test_of_a_question_that_a_coin_answers_half_are_guesses(make_case):
    case = make_case()
    yes = replace(case, sample=replace(case.sample, answer="Yes."))
    four = replace(case, sample=replace(case.sample, answer="A", choices=("A. a", "B. b", "C. c", "D. d")))
    assert [guessing_rate(one.sample) for one in (case, yes, four)] == [0.0, 0.5, 0.25]
    assert Necessity().blind_test(0.5) == SequentialTest(0.5, 0.75)
    assert Necessity().blind_test(0.25) == SequentialTest(0.25, 0.625)
    assert Necessity().blind_test(0.0) == SequentialTest(0.2, 0.5)


def test_a_stricter_bound_takes_the_lower_rate_along():
    test = Necessity(max_blind=0.25).blind_test(0.0)
    assert (test.low, test.high) == (pytest.approx(0.1), 0.25)
    assert Necessity(max_blind=0.25, needed_blind=0.05).blind_test(0.0).low == 0.05


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
    ("blind", "n_without_tools", "flaws"),
    [
        ((0, 5), 0, ["", ""]),
        ((2, 9), 3, ["", ""]),
        ((3, 4), 3, ["answerable_blind", ""]),
        ((0, 5), 4, ["", "answerable_without_tools"]),
        ((4, 4), 4, ["answerable_blind", "answerable_without_tools"]),
    ],
)
def test_the_checks_fail_for_what_was_answered_too_often_and_keep_the_counts(blind, n_without_tools, flaws):
    n_blind, n_asked = blind
    found = necessity_checks(BlindScores(4, n_blind, n_without_tools, n_blind_asked=n_asked), Necessity())
    assert [check.name for check in found] == ["needs_image", "needs_tools"]
    assert [check.reason for check in found] == flaws
    assert [check.score for check in found] == [n_blind / n_asked, n_without_tools / 4]
    assert [check.n_trials for check in found] == [n_asked, 4]
    assert found[0].detail == f"{n_blind} of {n_asked} answers to a blank image are right"


@pytest.mark.parametrize(
    ("most", "reason"), [(1.0, ""), (0.75, "answerable_blind"), (0.0, "answerable_blind"), (None, "")]
)
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
    assert scores.n_blind_asked == 4


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


def test_settings_that_make_no_test_are_named():
    with pytest.raises(ValueError, match="0 < low < high < 1"):
        Necessity(needed_blind=0.0)


def test_the_error_rates_are_said_exactly():
    said = error_rates_in_words(asdict(Necessity()) | {"model": "m"})
    assert "answered blind 50% of the time 8.6% pass" in said
    assert "answered 20% of the time 8.3% are rejected" in said
    assert error_rates_in_words({"k": 4, "max_blind": 0.5, "model": "m"}) == ""


LARGE = Truth(boxes=(TruthBox("sign", 200, 120, 320, 240),))


def embedded(case):
    recipe = load_recipes()["crop"]
    return measured(case, oracle_policy(recipe.family, revision="1"))


def test_the_embedded_policy_sees_what_is_large_and_nothing_in_a_blank_image(make_case):
    scores = embedded(make_case(truth=LARGE))
    assert (scores.n_blind, scores.n_without_tools) == (0, 4)


def test_the_embedded_policy_misses_what_is_tiny_or_altered(make_case, store, make_image):
    case = make_case(truth=LARGE)
    turned = replace(case, trajectory=replace(case.trajectory, images=(store.add_pixels(make_image(4)),)))
    assert embedded(turned).n_without_tools == 0
    tiny = replace(case, sample=replace(case.sample, truth=Truth(boxes=(TruthBox("sign", 200, 120, 216, 136),))))
    assert embedded(tiny).n_without_tools == 0
    dim = store.add_pixels(make_image(3, 640, 480).point([9 + level // 12 for level in range(256)] * 3))
    sample, run = replace(case.sample, images=(dim,)), replace(case.trajectory, images=(dim,))
    assert embedded(replace(case, sample=sample, trajectory=run)).n_without_tools == 0


def test_the_embedded_policy_guesses_among_choices_and_differently_each_time(make_case):
    case = make_case(choices=("A. stop", "B. go", "C. wait", "D. turn"))
    sample = replace(case.sample, answer="A")
    scores = asyncio.run(
        blind_scores(replace(case, sample=sample), OraclePolicy(oracle_script("crop"), revision="1"), Necessity(k=40))
    )
    assert scores.n_blind is not None
    assert 3 <= scores.n_blind <= 20
