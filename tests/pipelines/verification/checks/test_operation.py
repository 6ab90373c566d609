"""Whether work on an image did what was decided, and whether it helped."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from PIL import Image, ImageOps

from darkroom.pipelines.demo.images.material import photograph_image
from darkroom.pipelines.records import Observation, Round, Truth, TruthBox, Votes
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.verification.checks import judge_effective, operation_applied
from darkroom.pipelines.verification.judges import EmbeddedJudge

UPRIGHT = photograph_image("motorcycle")
ON_ITS_SIDE = UPRIGHT.transpose(Image.Transpose.ROTATE_90)
DIM = UPRIGHT.point([9 + round(level * 0.12) for level in range(256)] * 3)
TANK = (330, 160, 420, 220)
NOTHING_KNOWN = Truth()
BOX = Truth(boxes=(TruthBox("tank", *TANK),))


@pytest.fixture
def worked(make_case, store):
    """A rollout that made ``shown`` of ``original``."""

    def make(shown, original, *, operation=1, truth=NOTHING_KNOWN, **said):
        case = make_case(crop=shown, code="", hint={"operation": operation}, truth=truth, **said)
        image = store.add_pixels(original)
        return replace(
            case, trajectory=replace(case.trajectory, images=(image,)), sample=replace(case.sample, images=(image,))
        )

    return make


def asked(case, judge=None):
    return asyncio.run(judge_effective(case, judge or EmbeddedJudge()))


GOOD = [
    (UPRIGHT, ON_ITS_SIDE, 1, Truth(angle=90)),
    (ImageOps.autocontrast(DIM), DIM, 2, Truth(contrast=0.12)),
    (UPRIGHT.crop((310, 140, 440, 240)).resize((520, 400)), UPRIGHT, 3, BOX),
    (ImageOps.autocontrast(DIM).rotate(180), DIM, 4, Truth(angle=180, contrast=0.12)),
]


@pytest.mark.parametrize(("shown", "original", "operation", "truth"), GOOD)
def test_the_operation_that_was_decided_and_helped_passes(worked, shown, original, operation, truth):
    case = worked(shown, original, operation=operation, truth=truth)
    assert operation_applied(case).passed
    assert asked(case).passed


@pytest.mark.parametrize(
    ("shown", "original", "operation"),
    [
        (ON_ITS_SIDE, ON_ITS_SIDE, 1),
        (UPRIGHT, ON_ITS_SIDE, 2),
        (UPRIGHT, ON_ITS_SIDE, 4),
        (ImageOps.autocontrast(DIM), DIM, 3),
        (DIM, DIM, 2),
        (UPRIGHT.crop((310, 140, 440, 240)), UPRIGHT, 1),
        (photograph_image("coffee"), UPRIGHT, 3),
    ],
)
def test_another_operation_than_the_one_decided_fails(worked, shown, original, operation):
    found = operation_applied(worked(shown, original, operation=operation))
    assert (found.passed, found.reason) == (False, "other_operation")


def test_the_last_image_of_the_last_round_that_showed_one_counts(worked, store):
    bright, dim = store.add_pixels(ImageOps.autocontrast(DIM)), store.add_pixels(DIM.crop((10, 10, 90, 90)))
    case = worked(None, DIM, operation=2)
    for shown, passes in (([(dim, bright)], True), ([(bright, dim)], False), ([(dim,), (bright,), ()], True)):
        rounds = tuple(Round("", "", Observation("ok", "", images=images)) for images in shown)
        assert operation_applied(replace(case, trajectory=replace(case.trajectory, rounds=rounds))).passed is passes


def test_a_rollout_that_showed_nothing_applied_nothing(worked):
    assert operation_applied(worked(None, UPRIGHT)).reason == "other_operation"
    assert asked(worked(None, UPRIGHT)).reason == "no_image"


@pytest.mark.parametrize(
    ("shown", "original", "truth"),
    [
        (UPRIGHT, UPRIGHT, Truth()),
        (ON_ITS_SIDE.rotate(90, expand=True), ON_ITS_SIDE, Truth(angle=90)),
        (ON_ITS_SIDE.rotate(-60, expand=True), ON_ITS_SIDE, Truth(angle=90)),
        (UPRIGHT.transpose(Image.Transpose.FLIP_LEFT_RIGHT), ON_ITS_SIDE, Truth(angle=90)),
        (UPRIGHT.crop((360, 140, 500, 240)).resize((560, 400)), UPRIGHT, BOX),
        (UPRIGHT.crop((20, 20, 500, 400)), UPRIGHT, BOX),
        (DIM, UPRIGHT, Truth()),
        (photograph_image("coffee"), UPRIGHT, Truth()),
    ],
)
def test_work_that_missed_its_goal_is_ineffective(worked, shown, original, truth):
    found = asked(worked(shown, original, truth=truth))
    assert (found.passed, found.reason, found.score) == (False, "ineffective", 0.0)


class Voter:
    """A judge with a fixed opinion, that notes what it was shown."""

    def __init__(self, votes: Votes) -> None:
        self.identity, self.votes = {"policy": "voter"}, votes

    async def ask(self, question, case, *, slots, images=()):
        self.images, self.text = images, question.prompt.render(**slots)[1]
        return self.votes


@pytest.mark.parametrize(
    ("n_yes", "n_no", "n_invalid", "passes"), [(2, 1, 0, True), (1, 1, 0, False), (1, 0, 1, False), (0, 1, 2, False)]
)
def test_more_than_half_of_all_votes_decide(worked, n_yes, n_no, n_invalid, passes):
    found = asked(
        worked(UPRIGHT, ON_ITS_SIDE),
        Voter(Votes("voter", (True,) * n_yes + (False,) * n_no + (None,) * n_invalid, n_yes + n_no + n_invalid)),
    )
    assert found.passed is passes


def test_where_no_answer_is_a_vote_the_row_could_not_be_judged(worked):
    with pytest.raises(RowError, match="no_vote: none of 3 answers is a vote; voter: 0 of 3 say yes; cut off"):
        asked(worked(UPRIGHT, ON_ITS_SIDE), Voter(Votes("voter", (None,) * 3, 3, reasons=("cut off",) * 3)))


def test_the_judge_is_shown_the_image_the_output_and_all_that_was_said(worked):
    case = worked(UPRIGHT, ON_ITS_SIDE, thought="It lies on its side.", final_thought="Upright now.")
    judge = Voter(Votes("voter", (True,), 1))
    asked(case, judge)
    assert [image.sha256 for image in judge.images] == [image.sha256 for image in case.trajectory.shown_images]
    assert "It lies on its side." in judge.text
    assert "Upright now." in judge.text
