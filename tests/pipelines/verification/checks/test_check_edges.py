"""Checks at their bounds: what is recorded, the fewest and the most rounds, characters, sides and trials."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.models.protocols.tool_call import crop_line
from darkroom.pipelines.records import Check, Observation, Round, Sample, Truth, Votes
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.verification.checks import (
    BlindScores,
    Flaw,
    Necessity,
    OwnFlaw,
    calls_are_valid,
    check,
    executes,
    has_a_thought,
    has_tool_turns,
    mode_is_obeyed,
    no_program,
    no_round_is_broken,
    not_blank,
    not_repetitive,
    not_too_long,
    shows_an_image,
)
from darkroom.pipelines.verification.checks.check import CheckResult, by_votes, decided, failed, judged, passed, record
from darkroom.pipelines.verification.checks.crop import FirstLooks, executed_code, shows_whole, sides_in_view, tightness
from darkroom.pipelines.verification.checks.necessity import guessing_rate, necessity_checks
from darkroom.pipelines.verification.judges.judge import CountedJudge, EmbeddedJudge, YesOrNo, last_vote

PRINTED = Round("I count.", "print(7)", Observation("ok", "7\n"))
FAILED = Round("I count.", "x", Observation("error", "", error="NameError: x"))


# --- what is recorded


def test_a_verdict_keeps_its_score_its_evidence_and_its_trials():
    assert passed("d", score=0.5) == CheckResult(None, 0.5, "d", 0)
    assert failed(Flaw.NO_IMAGE, "d", score=0.5) == CheckResult(Flaw.NO_IMAGE, 0.5, "d", 0)
    assert decided(True, Flaw.NO_IMAGE, "d", score=1.0, n_trials=4) == CheckResult(None, 1.0, "d", 4)
    assert decided(False, Flaw.NO_IMAGE, "d") == CheckResult(Flaw.NO_IMAGE, None, "d", 0)
    assert record(failed(Flaw.NO_IMAGE, "d"), name="n", version=3) == Check("n", False, None, "d", "no_image", 3, 0)
    assert record(decided(True, Flaw.NO_IMAGE, "", n_trials=4), name="n", version=3) == Check(
        "n", True, None, "", "", 3, 4
    )


def test_a_check_has_its_functions_name_and_first_line_and_version_one(make_case):
    @check()
    def mine(case):
        """It holds.

        More."""
        return passed()

    @judged(None)  # type: ignore[arg-type]
    async def theirs(case, judge):
        return passed()

    assert (mine.name, mine.version, mine.description) == ("mine", 1, "It holds.")
    assert (theirs.name, theirs.version, theirs.description) == ("theirs", 1, "theirs")
    assert mine(make_case()) == Check("mine", True)
    assert asyncio.run(theirs(make_case(), EmbeddedJudge())) == Check("theirs", True)
    assert OwnFlaw("x" * 40) == "x" * 40


@pytest.mark.parametrize(
    ("ballots", "passes", "share"),
    [((True,), True, 1.0), ((True, False), False, 0.5), ((True, None, None), False, 1 / 3)],
)
def test_votes_pass_by_their_majority(ballots, passes, share):
    verdict = by_votes(Votes("j", ballots, 3), Flaw.INEFFECTIVE)
    assert (verdict.flaw is None, verdict.score, verdict.n_trials) == (passes, pytest.approx(share), len(ballots))


@pytest.mark.parametrize("ballots", [(), (None,), (None, None)])
def test_without_a_valid_vote_nothing_is_decided(ballots):
    with pytest.raises(RowError, match="no_vote"):
        by_votes(Votes("j", ballots, 3), Flaw.INEFFECTIVE)


def test_a_counted_judge_adds_the_threshold_and_the_usage(make_case):
    class Question:
        name = "consistency"
        rule = staticmethod(lambda case: True)

    plain, counted = CountedJudge(EmbeddedJudge()), CountedJudge(EmbeddedJudge(), {"consistency": 0.75})
    assert asyncio.run(plain.ask(Question, make_case())).threshold is None
    votes = asyncio.run(counted.ask(Question, make_case()))
    assert (votes.threshold, votes.ballots, votes.n_wanted) == (0.75, (True,), 1)
    assert counted.identity == {"policy": "embedded"}


def test_the_last_vote_of_a_text_counts():
    assert last_vote('{"verdict": true} {"verdict": false} {"other": 1}', YesOrNo) == YesOrNo(verdict=False)
    assert last_vote("none", YesOrNo) is None


# --- rounds


@pytest.mark.parametrize(
    ("rounds", "score", "passes"),
    [((FAILED,), 0.0, False), ((PRINTED, FAILED, PRINTED, PRINTED), 0.75, False), ((PRINTED,), 1.0, True)],
)
def test_the_share_of_rounds_that_ran_is_kept(make_case, rounds, score, passes):
    for each in (executes, no_round_is_broken):
        found = each(make_case(rounds=rounds))
        assert (found.passed, found.score) == (passes, score)
    assert executes(make_case(rounds=())).score == 0.0
    assert no_round_is_broken(make_case(rounds=())).score == 1.0


def test_a_round_without_an_error_says_its_status_alone(make_case):
    timeout = Round("", "", Observation("timeout", ""))
    assert executes(make_case(rounds=(timeout, FAILED))).detail == "round 1: timeout:; round 2: error: NameError: x"


@pytest.mark.parametrize("n", [0, 1, 2])
def test_programs_are_counted_where_none_is_needed(make_case, n):
    found = no_program(make_case(rounds=(PRINTED,) * n))
    assert (found.passed, found.score) == (n == 0, n)


@pytest.mark.parametrize(("n", "enough"), [(0, False), (1, False), (2, True), (3, True)])
def test_two_rounds_that_printed_are_enough(make_case, n, enough):
    silent = Round("", "", Observation("ok", " "))
    found = has_tool_turns(make_case(rounds=(PRINTED,) * n + (silent,)))
    assert (found.passed, found.score) == (enough, n)
    more = "" if enough else ", expected 2"
    assert found.detail == f"{n} of {n + 1} rounds printed or showed something{more}"


def test_rounds_without_an_image_or_a_thought_are_numbered_from_one(make_case):
    seen = make_case().trajectory.rounds[0]
    blind = Round(" ", "", Observation("ok", ""))
    case = make_case(rounds=(blind, seen, blind))
    assert shows_an_image(case).detail == "no image in round 1, 3"
    found = has_a_thought(case)
    assert (found.detail, found.score) == ("no thought before the program of round 1, 3", 0.3333)
    assert shows_an_image(make_case(rounds=())).detail == "no image in round 1"
    assert has_a_thought(make_case(rounds=(), final_thought=" ")).score == 0.0
    assert has_a_thought(make_case(rounds=(), final_thought="x")).score == 1.0


@pytest.mark.parametrize(("n_chars", "passes"), [(16_000, True), (16_001, False)])
def test_a_row_has_at_most_16000_characters(make_case, n_chars, passes):
    case = make_case(thought="", code="x" * 100, final_thought="y" * 100, answer="z" * 10)
    case = replace(case, trajectory=replace(case.trajectory, final_thought="y" * (n_chars - 110)))
    found = not_too_long(case)
    assert (found.passed, found.score) == (passes, n_chars)
    assert found.detail == f"{n_chars:,} characters, at most 16,000"


def test_the_middle_of_a_circle_is_shown(make_case):
    text = "".join(f"{n:04}" for n in range(100)) + "look at the sign again and read it " * 40
    found = not_repetitive(make_case(rounds=(), final_thought=text))
    middle = (len(text) - 80) // 2
    assert (
        found.detail == f"the final thought ({len(text):,} characters) repeats itself: {text[middle : middle + 80]!r}"
    )


@pytest.mark.parametrize(("step", "passes"), [(3, False), (4, True), (5, True)])
def test_an_image_is_plain_below_two_grey_levels_of_deviation(make_case, step, passes):
    """Half of it is ``step`` levels brighter: the deviation is half of the step."""
    levels = np.full((40, 40), 100, np.uint8)
    levels[:, 20:] += step
    found = not_blank(make_case(crop=Image.fromarray(levels)))
    assert (found.passed, found.score) == (passes, float(passes))


def test_one_image_of_the_last_round_that_is_not_plain_is_enough(make_case, store, make_image):
    plain, textured = store.add_pixels(Image.new("RGB", (9, 9))), store.add_pixels(make_image(1))
    rounds = tuple(
        Round("", "", Observation("ok", "", images=images)) for images in ((plain, plain), (textured, plain))
    )
    found = not_blank(make_case(rounds=rounds))
    assert (found.passed, found.score, found.detail) == (True, 0.25, "1 of 4 images are not plain")
    assert not not_blank(make_case(rounds=rounds[::-1])).passed


@pytest.mark.parametrize(
    ("sides", "target", "is_valid"),
    [
        ([0, 0, 1, 1], 1, True), ([0, 0, 1.01, 1], 1, False), ([-0.01, 0, 1, 1], 1, False), ([0, 0, 1, 1], 2, False),
        ([0, 0, 1, 1], 0, False), ([0.5, 0, 0.5, 1], 1, False), ([0, 0.5, 1, 0.5], 1, False),
        ([0.5, 0, 0.4, 1], 1, False),
    ],
)  # fmt: skip
def test_a_call_lies_in_an_image_that_there_is(make_case, sides, target, is_valid):
    assert calls_are_valid(make_case(code=crop_line(sides, target))).passed is is_valid


def test_what_a_call_showed_can_be_called_on_next(make_case):
    first = make_case(code=crop_line([0, 0, 1, 1], 1)).trajectory.rounds[0]
    for target, is_valid in ((2, True), (3, False)):
        rounds = (first, replace(first, code=crop_line([0, 0, 1, 1], target)))
        found = calls_are_valid(make_case(rounds=rounds))
        assert found.passed is is_valid
        assert found.detail == ("2 calls" if is_valid else "round 2: there is no image 3, there are 2")


@pytest.mark.parametrize(
    ("mode", "style", "n_calls", "obeyed"),
    [("free", None, 0, True), ("free", None, 1, True), ("forced", "text", 1, True), ("forbidden", "tool", 0, True)],
)
def test_only_a_free_row_follows_what_it_was_chosen_for(make_case, mode, style, n_calls, obeyed):
    case = make_case(rounds=(PRINTED,) * n_calls, hint={"style": style} if style else {})
    found = mode_is_obeyed(replace(case, trajectory=replace(case.trajectory, mode=mode)))
    assert (found.passed, found.score, found.detail) == (obeyed, n_calls, f"{n_calls} calls in the mode {mode}")


# --- crops


@pytest.mark.parametrize(
    ("crop", "slack"),
    [(Box(0, 0, 99, 99), 2), (Box(0, 0, 100, 50), 3), (Box(0, 0, 50, 199), 3), (Box(0, 0, 200, 9), 4)],
)
def test_a_crop_may_be_off_by_two_pixels_and_a_hundredth_of_its_side(crop, slack):
    assert shows_whole(crop, crop.grown(slack))
    assert not shows_whole(crop, crop.grown(slack + 1))


def test_sides_are_scaled_and_counted_from_the_crops_own_corner():
    view = Image.new("L", (200, 300))
    assert sides_in_view(view, Box(10, 20, 110, 120), Box(20, 40, 60, 70)) == (20.0, 60.0, 100.0, 150.0)


def test_a_quarter_of_the_image_is_tight(make_case):
    image = make_case().sample.images[0]

    class At:
        def __init__(self, box):
            self.box = box

    for box, is_tight in ((Box(0, 0, 320, 240), True), (Box(0, 0, 321, 240), False)):
        found = tightness(At(box), image)
        assert ((found.flaw is None), found.score) == (is_tight, round(box.area / (640 * 480), 4))
    assert tightness(None, image).score == 1.0


def test_repairs_are_made_and_clamped_boxes_are_below(make_case):
    from darkroom.pipelines.records import Edit

    def ran(*edits: Edit) -> str:
        return executed_code(Round("", "a b", Observation("ok", "", edits=edits)))

    assert ran() == "a b"
    assert ran(Edit("strip", "a", "c")) == "c b"
    assert ran(Edit("clamp_box", "a", "box")) == "a b\nbox"
    assert ran(Edit("strip", "", "c"), Edit("tool call", "a", "c"), Edit("strip", "b", "d")) == "a d"


@pytest.mark.parametrize(
    ("n", "n_hits", "by_chance", "is_beyond"),
    [
        (20, 13, 5.0, True), (20, 12, 5.0, False), (4, 4, 0.71, True), (4, 4, 0.72, False),
        (5, 5, 1.25, True), (4, 4, 1.0, False),
        (20, 1, 5.0, False), (20, 5, 5.0, False), (0, 0, 0.0, False),
    ],
)  # fmt: skip
def test_so_many_hits_are_beyond_chance_in_one_of_a_thousand_datasets(n, n_hits, by_chance, is_beyond):
    assert FirstLooks(n, n_hits, by_chance).is_beyond_chance is is_beyond


# --- necessity


@pytest.mark.parametrize(
    ("answer", "choices", "rate"),
    [
        ("red", (), 0.0), ("Yes.", (), 0.5), ("no", (), 0.5), ("true", (), 0.5), ("False", (), 0.5), ("not", (), 0.0),
        ("A", ("A. x", "B. y"), 0.5), ("A", ("A. x", "B. y", "C. z"), 1 / 3), ("A", ("A. x",), 0.5),
    ],
)  # fmt: skip
def test_an_answer_is_guessed_at_one_in_so_many(answer, choices, rate):
    assert guessing_rate(Sample("s", "t", "1", "", (), "Q?", choices, answer, Truth(), "object")) == rate


@pytest.mark.parametrize(
    ("limits", "chance", "low", "high"),
    [
        (Necessity(), 0.0, 0.2, 0.5), (Necessity(), 0.5, 0.5, 0.75), (Necessity(), 0.25, 0.25, 0.625),
        (Necessity(max_blind=0.25), 0.0, 0.1, 0.25),
        (Necessity(needed_blind=0.1), 0.0, 0.1, 0.5), (Necessity(max_blind=0.9), 0.0, 0.2, 0.9),
    ],
)  # fmt: skip
def test_both_rates_rise_with_what_is_guessed(limits, chance, low, high):
    test = limits.blind_test(chance)
    assert test is not None
    assert (test.low, test.high) == (pytest.approx(low), pytest.approx(high))
    assert (test.first, test.most, test.false_high, test.false_low) == (4, 32, 0.1, 0.1)


@pytest.mark.parametrize("most", [None, 0, 1, 0.0, 1.0])
def test_a_bound_of_none_nought_or_one_is_no_test(most):
    assert Necessity(max_blind=most).blind_test(0.0) is None


def test_a_test_has_at_least_the_first_answers():
    test = Necessity(k=40).blind_test(0.0)
    assert (test.first, test.most) == (40, 40)
    assert Necessity(k=1).blind_test(0.0).first == 1


@pytest.mark.parametrize(
    ("n_right", "limits", "passes"),
    [
        (2, Necessity(max_blind=None, max_without_tools=0.5),
        (True, True)), (3, Necessity(max_blind=None, max_without_tools=0.5), (True, False)),
        (4, Necessity(max_blind=1, max_without_tools=None),
        (True, True)), (1, Necessity(max_blind=0, max_without_tools=1), (False, True)),
        (0, Necessity(max_blind=0, max_without_tools=0), (True, True)),
    ],
)  # fmt: skip
def test_a_share_on_the_bound_passes(n_right, limits, passes):
    found = necessity_checks(BlindScores(4, n_right, n_right), limits)
    assert tuple(each.passed for each in found) == passes
    assert [(each.name, each.version, each.n_trials) for each in found] == [
        ("needs_image", 2, 4),
        ("needs_tools", 1, 4),
    ]
