"""How one image was made from another, on real photographs."""

from __future__ import annotations

import pytest
from PIL import Image, ImageOps

from darkroom.pipelines.demo.images.material import photograph_image
from darkroom.pipelines.vision.image_transform import Operation, measure_transform, residual, side_by_side
from tests.matrices import every_nth

MOTORCYCLE, ASTRONAUT = photograph_image("motorcycle"), photograph_image("astronaut")
DIM = MOTORCYCLE.point([9 + round(level * 0.12) for level in range(256)] * 3)
PART = (300, 200, 450, 320)
DIRECTION, LIGHTING, REGION = Operation.DIRECTION, Operation.LIGHTING, Operation.REGION


@pytest.mark.parametrize("angle", every_nth([0, 90, 180, 270, 17, 33, 200, 335], 2))
@pytest.mark.parametrize("image", [MOTORCYCLE, ASTRONAUT], ids=["wide", "square"])
def test_the_angle_is_measured(image, angle):
    found = measure_transform(image.rotate(angle, expand=True, resample=Image.Resampling.BICUBIC), image)
    assert residual(found.angle - angle) < 1
    assert found.operations == ((DIRECTION,) if angle else ())


@pytest.mark.parametrize("mirror", [Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM])
def test_a_mirrored_image_is_turned(mirror):
    found = measure_transform(MOTORCYCLE.transpose(mirror), MOTORCYCLE)
    assert found.mirrored
    assert found.operations == (DIRECTION,)


@pytest.mark.parametrize(
    "relight", [ImageOps.autocontrast, ImageOps.equalize, lambda image: image.point(lambda x: x * 4)]
)
def test_more_contrast_is_measured(relight):
    found = measure_transform(relight(DIM), DIM)
    assert found.contrast_gain > 2
    assert found.operations == (LIGHTING,)


def test_the_part_and_its_enlargement_are_measured():
    found = measure_transform(MOTORCYCLE.crop(PART).resize((600, 480)), MOTORCYCLE)
    assert all(abs(side - wanted) <= 2 for side, wanted in zip(found.box, PART, strict=True))
    assert found.enlargement == pytest.approx(4, abs=0.1)
    assert found.operations == (REGION,)


@pytest.mark.parametrize(
    ("shown", "original", "operations"),
    [
        (ImageOps.autocontrast(DIM).rotate(90, expand=True), DIM, (DIRECTION, LIGHTING)),
        (ImageOps.autocontrast(DIM).rotate(30, expand=True), DIM, (DIRECTION, LIGHTING)),
        (ImageOps.autocontrast(DIM.crop(PART)).resize((600, 480)), DIM, (LIGHTING, REGION)),
        (MOTORCYCLE.crop(PART).rotate(90, expand=True), MOTORCYCLE, (DIRECTION, REGION)),
        (MOTORCYCLE.resize((1482, 1000)), MOTORCYCLE, (REGION,)),
    ],
)
def test_operations_are_told_apart_when_they_are_combined(shown, original, operations):
    assert measure_transform(shown, original).operations == operations


@pytest.mark.parametrize(
    "shown", [photograph_image("coffee"), Image.new("RGB", (300, 200)), Image.new("RGB", (3, 3), "red")]
)
def test_images_with_nothing_in_common_have_no_change(shown):
    assert measure_transform(shown, MOTORCYCLE) is None


@pytest.mark.parametrize(("angle", "degrees"), [(0, 0), (360, 0), (-90, 90), (270, 90), (181, 179), (725, 5)])
def test_a_residual_is_the_short_way_back(angle, degrees):
    assert residual(angle) == degrees


@pytest.mark.parametrize(("n_boxes", "widths"), [(3, [40, 60, 20]), (2, [180]), (1, [180]), (0, [180])])
def test_images_that_white_bars_divide_are_taken_apart_where_they_are_as_many_as_the_boxes(n_boxes, widths):
    sheet = Image.new("RGB", (180, 50), "white")
    for left, width in ((0, 40), (70, 60), (160, 20)):
        sheet.paste((90, 10, 30), (left, 5, left + width, 45))
    pieces = side_by_side(sheet, n_boxes)
    assert [piece.width for piece in pieces] == widths
    assert {piece.height for piece in pieces} == {50}
