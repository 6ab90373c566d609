from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from darkroom.annotation._plugin.darkroom_studio.content import share_of, to_corners
from darkroom.annotation.rounds.next_tasks import to_percent
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.storage.images import ImageStore
from tests.image_files import encoded
from tests.matrices import fewer_quickly

sides = st.integers(2, 20_000)


@st.composite
def boxes(draw: st.DrawFn) -> tuple[Box, int, int]:
    width, height = draw(sides), draw(sides)
    x1, y1 = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    return Box(x1, y1, draw(st.integers(x1 + 1, width)), draw(st.integers(y1 + 1, height))), width, height


@settings(max_examples=fewer_quickly(1_000))
@given(boxes())
def test_a_box_comes_back_from_percent(found: tuple[Box, int, int]) -> None:
    assert comes_back(*found)


def test_ten_thousand_boxes_come_back_from_percent() -> None:
    chance = Random(0)
    for _ in range(10_000):
        width, height = chance.randint(2, 20_000), chance.randint(2, 20_000)
        x1, y1 = chance.randrange(width), chance.randrange(height)
        box = Box(x1, y1, chance.randint(x1 + 1, width), chance.randint(y1 + 1, height))
        assert comes_back(box, width, height)


def comes_back(box: Box, width: int, height: int) -> bool:
    value = to_percent(box, width, height)
    again = to_percent(to_corners(value, width, height), width, height)
    is_same = all(math.isclose(again[name], value[name], abs_tol=1e-9) for name in value)
    return to_corners(value, width, height) == box and is_same


@given(st.floats(-50, 150), st.floats(-50, 150), st.floats(0.01, 150), st.floats(0.01, 150), sides, sides)
def test_a_box_is_clipped_to_the_image_or_refused(
    x: float, y: float, wide: float, high: float, width: int, height: int
) -> None:
    value = {"x": x, "y": y, "width": wide, "height": high, "rotation": 0}
    try:
        box = Box(*to_corners(value, width, height))
    except ValueError:
        outside = x + wide <= 0.01 or y + high <= 0.01 or x >= 99.9 or y >= 99.9
        assert (
            outside
            or x + wide < 100 / width
            or y + high < 100 / height
            or x > 100 - 100 / width
            or y > 100 - 100 / height
        )
    else:
        assert box.fits(width, height)


def test_what_a_browser_snapped_to_pixels_is_exact() -> None:
    value = {"x": 59.8828125, "y": 68.81944444444444, "width": 7.7734375, "height": 7.569444444444443, "rotation": 0}
    assert to_corners(value, 2560, 1440) == (1533, 991, 1732, 1100)


@pytest.mark.parametrize("rotation", [90, -15, 0.5, 359])
def test_a_rotated_rectangle_is_refused(rotation: float) -> None:
    with pytest.raises(ValueError, match="rotated"):
        to_corners({"x": 10, "y": 10, "width": 10, "height": 10, "rotation": rotation}, 100, 100)


@pytest.mark.parametrize(
    "changed",
    [
        {"x": None},
        {"x": "10"},
        {"x": True},
        {"width": float("nan")},
        {"height": float("inf")},
        {"width": 0},
        {"height": -3},
        {"x": 100},
        {"x": -20},
        {"y": 130},
    ],
)
def test_what_is_no_rectangle_in_the_image_is_refused(changed: dict[str, object]) -> None:
    value = {"x": 10, "y": 10, "width": 10, "height": 10, "rotation": 0} | changed
    with pytest.raises(ValueError, match=r"."):
        to_corners(value, 100, 100)


def test_an_image_without_a_size_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a positive image size"):
        to_corners({"x": 1, "y": 1, "width": 1, "height": 1}, 0, 100)


@pytest.mark.parametrize("box", [(0, 0, 0, 5), (-1, 0, 5, 5), (0, 0, 101, 5), (5, 5, 2, 2)])
def test_a_box_that_does_not_fit_has_no_percent(box: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="is no box inside"):
        to_percent(box, 100, 50)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_are_on_the_upright_image_whatever_exif_said(orientation: int, tmp_path) -> None:
    """A red square that people see at the top left of the upright image is where the box says."""
    upright = Image.new("RGB", (80, 60), "white")
    upright.paste("red", (8, 6, 24, 18))
    stored = _as_stored(upright, orientation)
    exif = Image.Exif()
    exif[0x0112] = orientation
    store = ImageStore(str(tmp_path))
    ref = store.ingest(encoded(stored, exif=exif))
    assert (ref.width, ref.height) == (80, 60)
    box = to_corners({"x": 10, "y": 10, "width": 20, "height": 20, "rotation": 0}, ref.width, ref.height)
    assert store.open(ref).convert("RGB").crop(box).getcolors() == [(16 * 12, (255, 0, 0))]


def _as_stored(upright: Image.Image, orientation: int) -> Image.Image:
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    return upright.transpose(back[orientation]) if orientation in back else upright


def test_the_share_is_that_of_the_drawn_rectangle() -> None:
    assert share_of({"width": 50, "height": 10}) == pytest.approx(0.05)
