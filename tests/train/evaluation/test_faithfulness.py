"""Crops that were planted inside the target, outside, and of the whole image."""

import asyncio
from dataclasses import asdict

import pytest
from PIL import Image

from darkroom.pipelines.generation.rollout import Rollout
from darkroom.pipelines.records import Observation, Round, Usage
from darkroom.pipelines.records.geometry import Box, iou
from darkroom.pipelines.vision.image_transform import ImageTransform
from darkroom.sandbox import SandboxPool
from darkroom.train.evaluation.observed_images import ImageTracer
from darkroom.train.evaluation.results import faithfulness, shown_to, shows_a_target, with_boxes
from tests.image_files import encoded
from tests.train.evaluation.conftest import TARGET, desert, played, seen

INSIDE, OUTSIDE, WHOLE, HALF = (190, 110, 270, 160), (400, 300, 480, 350), (0, 0, 640, 480), (230, 110, 300, 160)


def crop(box, *, of=0):
    share = (box[2] - box[0]) * (box[3] - box[1]) / (640 * 480)
    return seen(ImageTransform(0.0, False, Box(*box), share, 1.0, 1.0, 0.0), of=of)


def rollout(name, *boxes, right=True):
    return played(name, right=right, seen=[crop(box) for box in boxes])


ROLLOUTS = [
    rollout("a", INSIDE),
    rollout("b", OUTSIDE),
    rollout("c", WHOLE),
    rollout("d", OUTSIDE, INSIDE),
    rollout("e", INSIDE, right=False),
    rollout("f"),
    rollout("g", right=False),
    played("h", seen=[seen(None)]),
]


def test_codev_counts_the_whole_image_and_divides_in_two_ways():
    """Right: a b c d f h. Faithful: a c d e."""
    found = faithfulness(ROLLOUTS, shows_a_target)
    assert (found.given_correct.mean, found.given_correct.n) == (pytest.approx(3 / 6), 6)
    assert (found.over_all.mean, found.over_all.n) == (pytest.approx(3 / 8), 8)


def test_a_whole_image_is_no_crop_under_the_control():
    found = faithfulness(ROLLOUTS, shows_a_target, whole_share=0.8)
    assert found.given_correct.mean == pytest.approx(2 / 6)
    assert found.over_all.mean == pytest.approx(2 / 8)


def test_the_share_that_counts_as_whole_can_be_set():
    nearly = [rollout("a", (0, 0, 640, 300))]
    assert faithfulness(nearly, shows_a_target, whole_share=0.8).faithful == 1.0
    assert faithfulness(nearly, shows_a_target, whole_share=0.5).faithful == 0.0


@pytest.mark.parametrize("whole_share", [None, 0.8])
def test_the_three_shares_add_up(whole_share):
    found = faithfulness(ROLLOUTS, shows_a_target, whole_share=whole_share)
    assert found.faithful + found.unfaithful + found.no_picture == pytest.approx(1.0)
    assert found.no_picture == 2 / 8
    assert "no_picture" in asdict(found), "a key of users' reports"


def test_a_crop_must_show_enough_of_the_target():
    one = rollout("a", HALF)
    assert shows_a_target(one, one.seen[0], cover=0.5)
    assert not shows_a_target(one, one.seen[0], cover=0.6)


def test_any_of_several_targets_is_enough():
    one = played("a", boxes=(TARGET, OUTSIDE), seen=[crop(OUTSIDE)])
    assert shows_a_target(one, one.seen[0])


def test_a_target_in_another_image_is_not_shown():
    one = played("a", seen=[crop(INSIDE, of=1)])
    assert not shows_a_target(one, one.seen[0])


def test_questions_without_boxes_are_not_judged_by_them():
    assert with_boxes([played("a", boxes=()), *ROLLOUTS[:1]]) == ROLLOUTS[:1]


def test_nobody_played_is_nobody_faithful():
    found = faithfulness([], shows_a_target)
    assert (found.given_correct.n, found.over_all.n, found.faithful) == (0, 0, 0.0)


def test_a_judge_is_asked_once_about_a_question_and_an_image():
    asked = []

    async def judge(question, image):
        asked.append((question, image.sha256))
        return True

    words = asyncio.run(shown_to(judge, [rollout("a", INSIDE, OUTSIDE), rollout("a", INSIDE)]))
    assert len(asked) == len(set(asked)) == len(words) == 1  # the same image, planted thrice
    assert all(words.values())


# --- where images come from, measured on pixels


@pytest.fixture(scope="module")
def figures():
    """Programs as PyVision's models write them, in the real sandbox: what ``plt.show`` makes of a crop."""
    with SandboxPool() as pool, pool.group(images=[encoded(desert())]) as group, group.session(seed=1) as session:
        yield lambda code: session.run(code).images[0].pixels


@pytest.mark.parametrize(
    "shown", ["plt.imshow(c)", "plt.imshow(c)\nplt.axis('off')", "plt.title('zoom')\nplt.imshow(c)"]
)
@pytest.mark.parametrize(
    "crop", [f"c = image_clue_0.crop({INSIDE})", "b = [190] + [110]\nc = image_clue_0.crop(b + [270, 160])"]
)
def test_a_crop_in_a_figure_is_found(look, figures, crop, shown):
    code = f"{crop}\n{shown}\nplt.show()"
    found = look(figures(code), code)
    assert iou(found.change.box, INSIDE) > 0.9
    assert planted(found)


def test_every_panel_of_a_figure_is_found(store, ledger, figures):
    code = f"""f, a = plt.subplots(1, 2)
a[0].imshow(image_clue_0)
left, top = {INSIDE[:2]}
a[1].imshow(image_clue_0.crop((left, top, left + 80, top + 50)))
plt.show()"""
    original, shown = store.add_pixels(desert()), store.add_pixels(figures(code))
    whole, part = asyncio.run(ImageTracer(store, ledger).trace_image((original,), code, shown))
    assert whole.is_untouched
    assert tuple(part.change.box) == INSIDE


@pytest.mark.parametrize("wall", ["white", "grey"])
@pytest.mark.parametrize("enlarged", [1, 3])
def test_a_crop_of_a_sign_with_its_wall_is_the_box_that_the_code_spells(store, ledger, wall, enlarged):
    """A plain wall around a sign looks as a figure does around its panel."""
    image = Image.new("RGB", (480, 360), wall)
    image.paste(desert().resize((160, 60)), (150, 130))
    box = (120, 100, 340, 221)
    crop = image.crop(box)
    original = store.add_pixels(image)
    shown = store.add_pixels(crop.resize((crop.width * enlarged, crop.height * enlarged), Image.Resampling.LANCZOS))
    tracer = ImageTracer(store, ledger)
    (found,) = asyncio.run(tracer.trace_image((original,), f"image.crop({box}).save('sign.png')", shown))
    assert tuple(found.change.box) == box
    (found,) = asyncio.run(tracer.trace_image((original,), "image.crop((0, 0, 220, 121))", shown))
    assert found.change is None or tuple(found.change.box) != (0, 0, 220, 121)


def test_a_plot_is_no_part_of_the_image(look, figures):
    assert look(figures("plt.plot([1, 2, 3], [3, 1, 2])\nplt.show()")).change is None


@pytest.fixture
def look(store, ledger):
    original = store.add_pixels(desert())
    tracer = ImageTracer(store, ledger)

    def look(image, code=""):
        shown = store.add_pixels(image)
        turns = (Round("", code, Observation("ok", "", (shown,))),)
        (found,) = asyncio.run(tracer.trace((original,), Rollout(turns, "", "red", Usage())))
        return found

    return look


def at(box, scale=1):
    part = desert().crop(box)
    return part.resize((part.width * scale, part.height * scale))


def planted(found):
    one = played("a", seen=[found])
    return shows_a_target(one, found)


def test_an_enlarged_crop_of_the_target_is_found(look):
    found = look(at(INSIDE, 4), f"im.crop({INSIDE}).resize((320, 200))")
    assert tuple(found.change.box) == INSIDE
    assert planted(found)


def test_a_crop_is_found_without_its_numbers_in_the_code(look):
    assert planted(look(at(INSIDE, 2), "im.crop(box)"))


def test_a_box_in_the_code_is_not_believed_when_the_pixels_are_from_elsewhere(look):
    found = look(at(OUTSIDE, 2), f"box = {INSIDE}\nim.crop(other)")
    assert not planted(found)
    assert found.is_part(0.8)


def test_the_whole_image_is_no_part_and_untouched(look):
    found = look(desert().resize((320, 240)))
    assert found.is_untouched
    assert not found.is_part(0.8)
    assert planted(found)


def test_a_turned_image_is_not_untouched(look):
    assert not look(desert().rotate(90, expand=True)).is_untouched


def test_the_crop_of_a_tool_call_is_where_the_call_says(look):
    found = look(at((160, 96, 320, 192)), "crop_image_normalized(bbox_2d=[0.25, 0.2, 0.5, 0.4], target_image=1)")
    assert tuple(found.change.box) == (160, 96, 320, 192)


def test_what_shows_nothing_of_the_question_is_nowhere(look):
    found = look(desert(5).crop((0, 0, 200, 100)))
    assert found.change is None
    assert not found.is_part(0.8)


def test_an_image_is_measured_once(store, ledger, monkeypatch):
    original, shown = store.add_pixels(desert()), store.add_pixels(at(INSIDE))
    tracer = ImageTracer(store, ledger)
    first = asyncio.run(tracer.trace_image((original,), "", shown))
    monkeypatch.setattr(ImageTracer, "_regions", None)  # would fail if it were asked again
    assert asyncio.run(ImageTracer(store, ledger).trace_image((original,), "", shown)) == first


def test_a_question_without_images_shows_none_of_them(store, ledger):
    shown = store.add_pixels(desert())
    (found,) = asyncio.run(ImageTracer(store, ledger).trace_image((), "plt.plot(x)", shown))
    assert found.change is None
