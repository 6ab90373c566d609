"""Redlines of rounds that a real sandbox has run."""

import asyncio

import pytest
from hypothesis import given, strategies as st
from PIL import Image

from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.protocols.tool_call import CROP_SETUP
from darkroom.pipelines.records import Observation, Round
from darkroom.train.rl.judging.code_rules import Redline, redlines, tool_scores

SAVED = "path = '/mnt/data/temp_processed_images/{}.png'\n{}.save(path)\nprint(path)"
OPENED = "image = Image.open(image_path)\n"
CROP = OPENED + SAVED.format("crop", "image.crop({})")


@pytest.fixture
def found(workspace):
    """The redlines of programs that are run one after the other on an image of 200x120 pixels."""
    picture = Image.radial_gradient("L").resize((200, 120)).convert("RGB")
    image = workspace.images.add_pixels(picture)

    async def run(programs, setup):
        async with Sandboxes(workspace.images, workspace.ledger).session((image,), seed=1) as session:
            if setup:
                await session.run(setup)
            return [Round("I look.", code, await session.run(code)) for code in programs]

    def of(*programs, setup=""):
        return redlines(asyncio.run(run(programs, setup)), (image,))

    return of


def test_honest_work_crosses_no_line(found):
    honest = (
        CROP.format((20, 10, 90, 70)),
        OPENED + SAVED.format("turned", "image.rotate(90, expand=True)"),
        "print(image.size, 6 * 7)",
        "crop = image.crop((50, 20, 120, 90)).resize((280, 280))",
        "plt.imshow(crop)\nplt.show()",
        "print(nope)",
    )
    assert found(*honest) == ((),) * 6


@pytest.mark.parametrize(
    "box",
    [
        *((260, 90, 150, 10), (90, 80, 20, 10), (300, 10, 350, 90), (20, 20, 20, 90), (-50, 60, 60, 0)),
        *((150, 10, 260, 90), (-50, 0, 60, 60), (0.1, 0.2, 0.5, 0.6)),
    ],
)
def test_a_box_that_misses_its_image_is_one(found, box):
    assert found(CROP.format(box)) == ((Redline.INVALID_COORDINATES,),)


@pytest.mark.parametrize("box", [(100, 10, 201, 90), (-2, 0, 60, 60), (20.4, 10.6, 90.2, 70.9)])
def test_a_box_that_is_off_by_rounding_is_none(found, box):
    assert found(CROP.format(box)) == ((),)


@pytest.mark.parametrize(
    "call",
    [
        "[0.2, 0.2, 1.4, 0.4], target_image=1",
        "[0.5, 0.2, 0.4, 0.4], target_image=1",
        "[0.2, 0.2, 0.4, 0.4], target_image=3",
    ],
)
def test_a_call_of_the_crop_tool_that_makes_no_sense_is_one(found, call):
    assert found(f"crop_image_normalized(bbox_2d={call})", setup=CROP_SETUP) == ((Redline.INVALID_COORDINATES,),)


@pytest.mark.parametrize(
    "code",
    [
        CROP.format((0, 0, 200, 120)),
        CROP.format((0, 0, 199, 119)),
        CROP.format((-20, -20, 220, 140)),
        "plt.imshow(image_clue_0)\nplt.show()",
        "crop_image_normalized(bbox_2d=[0.0, 0.0, 1.0, 1.0], target_image=1)",
    ],
)
def test_showing_the_whole_image_again_is_one(found, code):
    assert found(code, setup=CROP_SETUP) == ((Redline.WHOLE_IMAGE,),)


def test_showing_the_same_picture_twice_is_one(found):
    crop = CROP.format((20, 10, 90, 70))
    other = OPENED + SAVED.format("other", "image.crop((20, 10, 90, 70))")
    assert found(crop, other, CROP.format((20, 10, 91, 70))) == ((), (Redline.SAME_IMAGE,), ())


def test_a_new_picture_beside_an_old_one_is_none(found):
    both = OPENED + "image.crop((20, 10, 90, 70)).show()\nimage.crop((90, 10, 160, 70)).show()"
    assert found(CROP.format((20, 10, 90, 70)), both)[1] == ()


def test_an_image_that_is_only_read_and_saved_is_a_scratchpad(found):
    assert found(OPENED + SAVED.format("same", "image")) == ((Redline.SCRATCHPAD,),)


def test_failing_by_the_same_program_again_is_one(found):
    assert found("print(nope)", "print( nope )  # again") == ((), (Redline.SAME_ERROR,))


def test_failing_with_the_same_error_again_is_one(found):
    assert found("x = 1\nprint(nope)", "print(nope + 1)", "print(other)") == ((), (Redline.SAME_ERROR,), ())


def test_running_the_same_program_again_is_no_error(found):
    assert found("print(6 * 7)", "print(6 * 7)") == ((), ())


def test_what_does_not_parse_is_one(found):
    assert found("crop = (") == ((Redline.NO_PYTHON,),)


def test_what_the_sandbox_never_allows_is_one(found):
    assert found("import os\nos.remove(image_path)") == ((Redline.FORBIDDEN,),)


def test_two_programs_that_took_too_long_repeat_nothing():
    slow = Observation("timeout", "", error="TimeoutError: 10 s")
    rounds = [Round("", "while True: pass", slow), Round("", "while 1: pass", slow)]
    assert redlines(rounds, ()) == ((), ())


def test_a_redline_takes_the_place_of_the_judges_score():
    found = ((), (Redline.WHOLE_IMAGE,), (), (Redline.SAME_ERROR,))
    assert tool_scores(found, [1.0, 1.0, None, None]) == (1.0, -0.5, 0.0, -0.5)


@given(st.lists(st.lists(st.sampled_from(Redline), max_size=2), max_size=5))
def test_every_round_has_a_score_and_only_redlines_are_below_nothing(found):
    scores = tool_scores(found)
    assert [score < 0 for score in scores] == [bool(crossed) for crossed in found]


def test_scores_of_another_number_of_rounds_are_refused():
    with pytest.raises(ValueError, match="each of 2 rounds; found 1"):
        tool_scores(((), ()), (1.0,))
