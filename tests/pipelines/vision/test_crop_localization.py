"""Where a crop was taken from, by its pixels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from darkroom.pipelines.models.parsing import literal_boxes
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.vision.crop_localization import locate_crop
from tests.image_files import jpeg

BOX = Box(200, 120, 330, 230)


@pytest.fixture(scope="module")
def original(make_image):
    return make_image(3, 640, 480)


@pytest.fixture(scope="module")
def crop(original):
    return original.crop(BOX)


def is_near(found: Box, wanted: Box, slack: int) -> bool:
    return found.contains(wanted, slack=slack) and wanted.contains(found, slack=slack)


def test_a_crop_of_another_image_is_nowhere(make_image, original):
    assert locate_crop(make_image(9, 640, 480).crop(BOX), original) is None


def test_code_that_names_another_box_than_it_cropped_is_not_believed(original, crop):
    found = locate_crop(crop, original, literal_boxes("image.crop((0, 0, 130, 110))", *original.size))
    assert found is not None
    assert is_near(found.box, BOX, 2)


def test_code_that_names_a_box_does_not_make_another_image_a_crop(make_image, original):
    assert (
        locate_crop(
            make_image(9, 640, 480).crop(BOX), original, literal_boxes(f"image.crop({tuple(BOX)})", *original.size)
        )
        is None
    )


@pytest.mark.parametrize("shape", ["rotated", "mirrored"])
def test_a_turned_crop_is_nowhere(original, crop, shape):
    turned = crop.rotate(90, expand=True) if shape == "rotated" else crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    assert locate_crop(turned, original) is None


def test_a_plain_crop_of_a_textured_image_is_nowhere(original):
    assert locate_crop(Image.new("RGB", (100, 100), (90, 90, 90)), original) is None


def test_a_crop_of_a_few_pixels_is_not_searched(original):
    assert locate_crop(original.crop((5, 5, 9, 9)), original) is None


@pytest.mark.parametrize(
    "code",
    [
        "image.crop((200, 120, 330, 230))",
        "box = [200, 120, 330, 230]",
        "x1, y1, x2, y2 = 200, 120, 330, 230",
        "crop = image[120:230, 200:330]",
        "crop = image[120:230, 200:330, ::-1]",
        "image.crop((200.0, 120.0, 330.0, 230.0))",
    ],
)
def test_a_box_that_the_code_spells_out_is_exact(original, crop, code):
    found = locate_crop(crop, original, literal_boxes(code, *original.size))
    assert found is not None
    assert found.box == BOX
    assert found.difference == 0


@pytest.mark.parametrize("code", ["image.crop(box)", "image.crop((x, y, x + 130, y + 110))", "not python ("])
def test_a_computed_box_is_searched_for(original, crop, code):
    found = locate_crop(crop, original, literal_boxes(code, *original.size))
    assert found is not None
    assert is_near(found.box, BOX, 2)


@pytest.mark.parametrize("scale", [2, 3, 4, 8])
@pytest.mark.parametrize("code", [f"crop({tuple(BOX)})", ""])
def test_an_enlarged_crop_is_found(original, crop, scale, code):
    large = crop.resize((crop.width * scale, crop.height * scale), Image.Resampling.LANCZOS)
    found = locate_crop(large, original, literal_boxes(code, *original.size))
    assert found is not None
    assert is_near(found.box, BOX, 0 if code else 3)


@pytest.mark.parametrize("quality", [50, 90])
def test_a_crop_that_went_through_jpeg_is_found(original, crop, quality):
    found = locate_crop(jpeg(crop, quality), original)
    assert found is not None
    assert is_near(found.box, BOX, 2)


def test_the_whole_image_is_found_as_the_whole_image(original):
    found = locate_crop(original, original)
    assert found is not None
    assert found.box == Box(0, 0, 640, 480)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1"])
def test_images_of_any_mode_can_be_compared(original, crop, mode):
    found = locate_crop(crop.convert(mode), original, literal_boxes(f"crop({tuple(BOX)})", *original.size))
    assert found is None or is_near(found.box, BOX, 2)


def test_a_crop_of_a_large_image_is_found_to_a_hundredth(make_image):
    large = make_image(5, 3200, 2400)
    box = Box(1500, 700, 2100, 1100)
    found = locate_crop(large.crop(box), large)
    assert found is not None
    assert is_near(found.box, box, 2 + box.width // 100)


@given(st.integers(0, 400), st.integers(0, 300), st.integers(64, 240), st.integers(64, 180))
@settings(max_examples=12)
def test_any_crop_is_found_by_its_pixels_alone(make_image, x, y, width, height):
    original = make_image(3, 640, 480)
    box = Box(x, y, x + width, y + height)
    found = locate_crop(original.crop(box), original)
    assert found is not None
    assert is_near(found.box, box, 4)
