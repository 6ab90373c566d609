"""What is kept of an image so that the same image is found again: a hash, a small grey copy, and its local features.

Features are sought in a copy of 160 pixels, faint and large ones too, so that smooth images have some. About 25 kB per
image.
"""

import io
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from darkroom.pipelines.selection.duplicates.local_features import Features, Gray, Sought, features_of_both, scaled
from darkroom.pipelines.selection.duplicates.perceptual import PerceptualHash, on_white, perceptual_hash

SIDE = 320
"""The longer side, pixels, at which images are compared with one another."""
_SOUGHT = Sought(most=96, largest_side=160, contrast=0.001, cells=8, reach=1.5)
_QUALITY = 92


@dataclass(frozen=True, slots=True)
class Look:
    """An image as it is compared: ``features`` of the image and of its mirror image, in pixels of ``gray``."""

    hash: PerceptualHash | None
    jpeg: bytes
    features: tuple[Features, Features]

    @property
    def longer_side(self) -> int:
        """Of the grey copy, pixels."""
        return max(Image.open(io.BytesIO(self.jpeg)).size)

    @property
    def gray(self) -> Gray:
        """The small grey copy, decoded anew."""
        return np.asarray(cv2.imdecode(np.frombuffer(self.jpeg, np.uint8), cv2.IMREAD_GRAYSCALE), np.uint8)


def look_of(image: Image.Image) -> Look:
    return look_of_gray(gray_pixels(image), perceptual_hash(image))


def look_of_gray(gray: Gray, hashed: PerceptualHash | None) -> Look:
    """The look of an image whose grey levels and hash are there."""
    small = scaled(gray, min(1.0, SIDE / max(gray.shape)))
    encoded = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1]
    return Look(hashed, encoded.tobytes(), features_of_both(small, _SOUGHT))


def gray_pixels(image: Image.Image) -> Gray:
    """Grey levels, over white where the image is transparent."""
    return np.asarray(on_white(image).convert("L"))
