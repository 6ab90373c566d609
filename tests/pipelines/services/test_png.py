"""Our PNGs have the very pixels, for Pillow and OpenCV, at every level."""

import io
from unittest.mock import patch

import cv2
import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from darkroom.pipelines.services import files
from darkroom.pipelines.services.files import png


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 9), st.sampled_from([1, 300, 1000, 10_000]))
def test_the_pixels_come_back(width, height, compression, strip):
    pixels = np.random.default_rng(strip).integers(0, 256, (height, width, 3), np.uint8)
    with patch.object(files, "_STRIP", strip):
        data = b"".join(png(Image.fromarray(pixels), compression=compression))
    with Image.open(io.BytesIO(data)) as read:
        assert (read.mode, read.format) == ("RGB", "PNG")
        assert np.array_equal(np.asarray(read), pixels)
    assert np.array_equal(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1], pixels)


@pytest.mark.parametrize("compression", [0, 1, 9])
def test_equal_pixels_give_equal_bytes(compression):
    image = Image.new("RGB", (30, 20), (1, 2, 3))
    assert [*png(image, compression=compression)] == [*png(image.copy(), compression=compression)]
