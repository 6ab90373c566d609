"""How the files that a call wrote become the pixels that it shows."""

from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from darkroom.sandbox._guest.shown_images import Budget, read_image

NOISE = np.random.default_rng(5).integers(0, 256, (37, 53, 3), dtype=np.uint8)
SMOOTH = cv2.GaussianBlur(NOISE, (9, 9), 0)


def shown(path: Path) -> bytes:
    return read_image(str(path), path.name, Budget(1, 1 << 20, 1 << 20)).data


@pytest.mark.parametrize(("quality", "subsampling"), [*product((20, 75, 95), (0, 1, 2))])
def test_a_jpeg_shows_the_pixels_that_pillow_decodes(tmp_path: Path, quality: int, subsampling: int) -> None:
    path = tmp_path / "image.jpg"
    for number, (pixels, progressive) in enumerate(product((NOISE, SMOOTH, SMOOTH[:8, :17]), (False, True))):
        image = Image.fromarray(pixels)
        exif = Image.Exif()
        exif[0x112] = 1 + number  # a viewer would turn it, Pillow does not
        image.save(path, quality=quality, subsampling=subsampling, progressive=progressive, exif=exif)
        assert shown(path) == Image.open(path).tobytes()
        cv2.imwrite(
            str(path), pixels, [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)]
        )
        assert shown(path) == Image.open(path).tobytes()


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_jpegs_of_other_colours_become_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "image.jpg"
    Image.fromarray(SMOOTH).convert(mode).save(path)
    assert shown(path) == Image.open(path).convert("RGB").tobytes()


def test_a_jpeg_that_is_cut_short_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "image.jpg"
    Image.fromarray(NOISE).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"not shown: .*truncated"):
        shown(path)
