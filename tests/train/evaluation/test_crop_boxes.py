"""Boxes as programs spell them, and those that cannot be worked out."""

import pytest
from hypothesis import given, strategies as st

from darkroom.train.evaluation.code_analysis import crop_boxes

BOX = (10, 20, 110, 90)
PROGRAMS = {
    "numbers": "image.crop((10, 20, 110, 90))",
    "a list": "image.crop([10, 20, 110, 90])",
    "a name": "box = (10, 20, 110, 90)\nimage.crop(box)",
    "four names": "left, top, right, bottom = 10, 20, 110, 90\nimage.crop((left, top, right, bottom))",
    "names one by one": "x1 = 10; y1 = 20\nx2 = x1 + 100; y2 = y1 + 70\nimage.crop((x1, y1, x2, y2))",
    "slices": "image[20:90, 10:110]",
    "slices of names": "y, x = 20, 10\nimage[y:y+70, x:x+100]",
    "the size": "w, h = image.size\nimage.crop((w // 64, h / 24, int(w * 0.171875), max(90, 3)))",
    "the shape": "h, w = image.shape[:2]\nimage[20:h - 390, 10:w - 530]",
    "the width": "image.crop((10, 20, image.width - 530, image.height - 390))",
    "a part of the size": "image.crop((10, 20, image.size[0] - 530, image.shape[0] - 390))",
    "the last value counts": "x = 99\nx = 10\nimage.crop((x, 20, 110, 90))",
    "fractions of a pixel": "image.crop((10.4, 20.2, 109.5, 89.1))",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_box_is_worked_out(name):
    assert BOX in map(tuple, crop_boxes(PROGRAMS[name], 640, 480))


@pytest.mark.parametrize(
    "code",
    [
        "image.crop(box)",
        "x = f()\nimage.crop((x, 20, 110, 90))",
        "x = 10\nx = f()\nimage.crop((x, 20, 110, 90))",
        "image.crop((10 / 0, 20, 110, 90))",
        "image.crop((110, 20, 10, 90))",
        "image.crop((1000, 20, 1100, 90))",
        "image[:, :, 0]",
        "image.crop((10, 20",
        "a, *b = 1, 2, 3\nimage.crop((a, b, 3, 4))",
    ],
)
def test_what_cannot_be_worked_out_is_no_box(code):
    assert crop_boxes(code, 640, 480) == []


def test_a_box_beyond_the_image_is_cut():
    assert crop_boxes("image.crop((-10, 20, 900, 90))", 640, 480) == [(0, 20, 640, 90)]


@given(st.text(alphabet="xyz=(), \n0123456789.+-*/crop[]:", max_size=60))
def test_no_program_makes_it_fail(code):
    for box in crop_boxes(code, 64, 48):
        assert box.fits(64, 48)
