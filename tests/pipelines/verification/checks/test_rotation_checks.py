"""The checks on rotations, on real images: every way of being upright passes, every way of not being so is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from PIL import Image, ImageEnhance, ImageOps

from darkroom.pipelines.demo.images.material import photograph_image
from darkroom.pipelines.records import ImageRef, Observation, Round, Truth, TruthBox
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.case import Case
from darkroom.pipelines.verification.checks.check import Flaw
from darkroom.pipelines.verification.checks.image_operations import angle_undone, angle_unspoken, upright
from tests.matrices import every_nth, first_quickly

ANGLE = 132
NAMES = ("coffee", "horse", "page")

Turned = Callable[[Image.Image], Image.Image]


def turned_back(by: float = -ANGLE, **options) -> Turned:
    return lambda image: image.rotate(by, Image.Resampling.BICUBIC, **options)


def trimmed(image: Image.Image) -> Image.Image:
    whole = image.rotate(-ANGLE, Image.Resampling.BICUBIC, expand=True)
    return whole.crop(whole.convert("L").point(lambda level: 255 if level > 8 else 0).getbbox())


def scaled(factor: float) -> Turned:
    def scale(image: Image.Image) -> Image.Image:
        upright = image.rotate(-ANGLE, Image.Resampling.BICUBIC, expand=True)
        return upright.resize((round(upright.width * factor), round(upright.height * factor)))

    return scale


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    """One for all tests here, which are about few images."""
    return ImageStore(str(tmp_path_factory.mktemp("images")))


@pytest.fixture(scope="module")
def pictures(store: ImageStore) -> Callable[..., tuple[ImageRef, ImageRef, tuple[ImageRef, ...]]]:
    """A photograph as it is, as it was given, and what a program shows of that: each drawn once."""

    @cache
    def draw(programs: tuple[Turned, ...], name: str, canvas: bool, applied: int):
        original = photograph_image(name)
        given = original.rotate(applied, Image.Resampling.BICUBIC, expand=canvas)
        shown = tuple(store.add_pixels(program(given)) for program in programs)
        return store.add_pixels(original), store.add_pixels(given), shown

    return draw


@pytest.fixture
def rotated(pictures, make_case) -> Callable[..., Case]:
    def make(
        *programs: Turned,
        name: str = "coffee",
        canvas: bool = True,
        applied: int = ANGLE,
        boxes: tuple[TruthBox, ...] = (),
        **said,
    ) -> Case:
        original, given, shown = pictures(programs, name, canvas, applied)
        case = make_case(
            observation=Observation("ok", "/tmp/upright_4711.png", images=shown),
            hint={"angle": applied, "correction": 360 - applied},
            images=(original,),
            truth=Truth(boxes=boxes),
            **said,
        )
        return replace(case, trajectory=replace(case.trajectory, images=(given,)))

    return make


GOOD = {
    "expanded again": turned_back(expand=True),
    "canvas kept": turned_back(),
    "the other way round": turned_back(360 - ANGLE, expand=True),
    "white corners": turned_back(expand=True, fillcolor="white"),
    "trimmed": trimmed,
    "half as large": scaled(0.5),
    "twice as large": scaled(2),
    "two degrees off": turned_back(2 - ANGLE, expand=True),
    "grey": lambda image: ImageOps.grayscale(turned_back(expand=True)(image)),
    "brighter": lambda image: ImageEnhance.Brightness(turned_back(expand=True)(image)).enhance(1.3),
}


@pytest.mark.parametrize("name", first_quickly(NAMES))
@pytest.mark.parametrize("program", every_nth(GOOD, 2))
def test_an_upright_image_passes_however_it_was_turned_and_framed(rotated, name, program):
    case = rotated(GOOD[program], name=name)
    assert upright(case).passed
    assert angle_undone(case).passed


def test_an_image_that_was_turned_on_its_own_canvas_passes(rotated):
    case = rotated(turned_back(), canvas=False)
    assert upright(case).passed
    assert angle_undone(case).passed


BAD = {
    "not turned": lambda image: image.copy(),
    "turned the wrong way": turned_back(ANGLE, expand=True),
    "a quarter left": turned_back(90 - ANGLE, expand=True),
    "head down": turned_back(180 - ANGLE, expand=True),
    "a quarter right": turned_back(270 - ANGLE, expand=True),
    "four degrees off": turned_back(4 - ANGLE, expand=True),
    "four degrees off the other way": turned_back(-4 - ANGLE, expand=True),
    "mirrored": lambda image: ImageOps.mirror(turned_back(expand=True)(image)),
    "flipped": lambda image: ImageOps.flip(turned_back(expand=True)(image)),
    "another picture": lambda image: photograph_image("cat"),
    "plain": lambda image: Image.new("RGB", (300, 200), "grey"),
    "one pixel": lambda image: Image.new("RGB", (1, 1)),
}


@pytest.mark.parametrize("name", first_quickly(NAMES))
@pytest.mark.parametrize("program", every_nth(BAD, 2))
def test_an_image_that_is_not_upright_fails_for_that(rotated, name, program):
    case = rotated(BAD[program], name=name)
    found = upright(case), angle_undone(case)
    assert [check.reason for check in found] == [Flaw.NOT_UPRIGHT, Flaw.WRONG_ANGLE]


def test_the_last_image_counts(rotated):
    good, bad = GOOD["expanded again"], BAD["a quarter left"]
    for check in (upright, angle_undone):
        assert check(rotated(bad, good)).passed
        assert not check(rotated(good, bad)).passed


def test_what_is_wrong_is_told_in_degrees(rotated):
    found = upright(rotated(turned_back(20 - ANGLE, expand=True)))
    assert found.score == pytest.approx(20, abs=0.6)
    assert "from upright" in found.detail


def test_a_mirrored_image_is_called_so(rotated):
    assert "mirrored" in upright(rotated(BAD["mirrored"])).detail


def test_the_last_image_shown_counts(rotated):
    good, bad = rotated(GOOD["trimmed"]), rotated(BAD["head down"])
    rounds = (*good.trajectory.rounds, *bad.trajectory.rounds)
    assert not upright(replace(good, trajectory=replace(good.trajectory, rounds=rounds))).passed
    assert upright(replace(good, trajectory=replace(good.trajectory, rounds=rounds[::-1]))).passed


@pytest.mark.parametrize("check", [upright, angle_undone])
def test_a_rollout_that_showed_nothing_has_no_angle(rotated, check):
    assert check(rotated()).reason == Flaw.NO_IMAGE


def test_a_scrap_of_the_image_is_not_the_image(rotated):
    def scrap(image: Image.Image) -> Image.Image:
        whole = GOOD["trimmed"](image)
        return whole.crop((0, 0, whole.width // 2, whole.height // 2))

    assert upright(rotated(scrap)).reason == Flaw.TARGET_CUT


def test_an_upright_image_without_the_target_is_told(rotated):
    spoon = TruthBox("spoon", 318, 234, 408, 327)

    def upper(image: Image.Image) -> Image.Image:
        whole = GOOD["trimmed"](image)
        return whole.crop((0, 0, whole.width, whole.height // 2))

    assert upright(rotated(upper)).passed
    assert upright(rotated(upper, boxes=(spoon,))).reason == Flaw.TARGET_CUT
    assert upright(rotated(GOOD["trimmed"], boxes=(spoon,))).passed


# --- what may be said


@pytest.mark.parametrize(
    "said",
    [
        {"thought": "It is turned by 132 degrees."},
        {"thought": "It leans by about 130°."},
        {"thought": "I rotate it -132 deg."},
        {"thought": "a 228-degree turn"},
        {"thought": "That is 2.3 radians."},
        {"thought": "It leans by a hundred and thirty-two degrees."},
        {"thought": "Some thirty degrees to the left."},
        {"final_thought": "After 228 degrees it says STOP."},
        {"code": "# undo the 132 degrees\nimage.rotate(228)"},
        {"code": "angle = 228  # forty-five degrees more"},
        {"code": "rotated_228 = image.rotate(228)"},
        {"code": "rot132 = 228\nimage.rotate(rot132)"},
        {"code": "path = '/mnt/data/temp_processed_images/page_rot132.png'"},
        {"code": "path = f'/mnt/data/page_228_{n}.png'"},
        {"code": "print('turned by -132')"},
        {"code": "angle_minus_492 = 0"},
    ],
)
def test_an_angle_that_shows_is_found(rotated, said):
    assert angle_unspoken(rotated(GOOD["trimmed"], **said)).reason == Flaw.HINT_NUMBER


def test_a_path_that_tells_the_angle_is_found_where_it_is_printed(rotated):
    case = rotated(GOOD["trimmed"], code="print(path)")
    told = replace(case.trajectory.rounds[0], observation=Observation("ok", "/mnt/data/image_rot132.png"))
    assert angle_unspoken(replace(case, trajectory=replace(case.trajectory, rounds=(told,)))).reason == Flaw.HINT_NUMBER


@pytest.mark.parametrize(
    "said",
    [
        {"thought": "It leans clearly to the left, almost upside down."},
        {"thought": "Two signs hang at a slant; the 3 windows are tilted."},
        {"thought": "Houses numbered 12 and 14 lie on their side."},
        {"code": "angle = 228\nupright = image.rotate(angle, expand=True)"},
        {"code": "upright = image.rotate(-132)\n# back to level\npath = 'upright_4711.png'"},
        {"code": "array = np.asarray(image, np.float32)", "hint": None},
        {
            "final_thought": "The oven is set to 180 degrees.",
            "answer": "180 degrees",
            "question": "180 degrees or less?",
        },
        {"code": "def broken(:"},
    ],
)
def test_an_angle_that_stands_as_a_number_in_code_only_is_hidden(rotated, said):
    said = {key: value for key, value in said.items() if value is not None}
    assert angle_unspoken(rotated(GOOD["trimmed"], **said)).passed


def test_a_number_that_belongs_to_a_name_tells_no_angle(rotated):
    case = rotated(GOOD["trimmed"], code="levels = np.asarray(image, np.float32)\nlevels.astype('uint8')", applied=32)
    assert angle_unspoken(case).passed


@pytest.mark.parametrize(
    ("applied", "code"),
    [
        (180, "upright = image.transpose(Image.Transpose.ROTATE_180)"),
        (180, "upright = cv2.rotate(image, cv2.ROTATE_180)"),
        (270, "upright = cv2.rotate(image, cv2.ROTATE_90_COUNTERCLOCKWISE)"),
        (90, "upright = np.rot90(image, 3)"),
    ],
)
def test_a_constant_of_a_library_is_no_name_that_tells_an_angle(rotated, applied, code):
    assert angle_unspoken(rotated(GOOD["trimmed"], code=code, applied=applied)).passed


@pytest.mark.parametrize("code", ["rotate_180 = 1", "path = 'rotate_180.png'", "path = 'ROTATE_180.png'", "rot180 = 1"])
def test_a_name_of_ones_own_still_does(rotated, code):
    assert angle_unspoken(rotated(GOOD["trimmed"], code=code, applied=180)).reason == Flaw.HINT_NUMBER


def test_every_round_is_looked_at(rotated):
    case = rotated(GOOD["trimmed"])
    leaking = Round("Then 132 degrees.", "", Observation("ok", ""))
    rounds = (*case.trajectory.rounds, leaking)
    found = angle_unspoken(replace(case, trajectory=replace(case.trajectory, rounds=rounds)))
    assert found.detail.startswith("the thought of round 2")
