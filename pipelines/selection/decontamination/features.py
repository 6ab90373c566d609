"""Local features of an image, and what is stored of a benchmark's image so that it is found again.

Features are places that are found again when an image is cropped, scaled, turned or recompressed: SIFT (Lowe, 2004)
with square-rooted descriptors (Arandjelović and Zisserman, 2012), stored as 256 signs of projections. Matching features
of a crop differ in 15 bits at the median, unrelated ones in about 130. They are spread evenly over the image, so that a
small crop has its share of them. Fingerprints are computed once and cached on disk by content:

    <folder>/pictures-<version>/ab/abcdef….npz   one per image, by the sha256 of its bytes
    <folder>/rows-<version>/<benchmark>-<digest>.json   its rows: texts and the images' digests

Files are written atomically: an interrupted build resumes, a finished one reads nothing but this folder. About 300 kB
per image of 1500 pixels.
"""

import io
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.records.digest import digest, digest_bytes
from pipelines.selection.duplicates.looks import Features, Gray, Places, Signatures, gray_pixels, placed, scaled, spread
from pipelines.selection.duplicates.perceptual import PerceptualHash, perceptual_hash
from pipelines.storage.atomic_write import write_whole
from pipelines.storage.media_validation import decode, probe

LARGEST_SIDE = 1536
MOST_FEATURES = 2048
VERSION = 1
"""Part of the cache's digest: raise it with anything that changes features."""

_CELLS = 16
_SMALLEST_SIDE = 16
_DESCRIPTOR = tomllib.loads(Path(__file__).with_name("mean_descriptor.toml").read_text())
_MEAN = np.array(_DESCRIPTOR["thousandths"], np.float32).ravel() / 1000
"""Projections are taken about it: about the origin, all descriptors would look alike."""


def features(gray: Gray, *, most: int = MOST_FEATURES, largest_side: int = LARGEST_SIDE) -> Features:
    """The features of a grey image; it is searched at no more than ``largest_side`` pixels."""
    places, descriptors = _described(gray, most, largest_side)
    return Features(places, _signatures(descriptors))


def features_of_both(gray: Gray, *, most: int = MOST_FEATURES) -> tuple[Features, Features]:
    """Those of the image and of its mirror image, whose descriptors are the same with bins in another order."""
    places, descriptors = _described(gray, most, LARGEST_SIDE)
    mirrored = places * np.array([-1, 1, 1, -1], np.float32) + np.array([gray.shape[1] - 1, 0, 0, 180], np.float32)
    return Features(places, _signatures(descriptors)), Features(mirrored, _signatures(descriptors[:, _mirrored_bins()]))


def _described(gray: Gray, most: int, largest_side: int) -> tuple[Places, NDArray[np.float32]]:
    factor = min(1.0, largest_side / max(gray.shape))
    small = scaled(gray, factor)
    detector = cv2.SIFT.create(contrastThreshold=0.01, edgeThreshold=15)
    points = detector.detect(small) if min(small.shape) >= _SMALLEST_SIDE else ()  # OpenCV raises on a line of pixels
    if not len(points):
        return np.empty((0, 4), np.float32), np.empty((0, len(_MEAN)), np.float32)
    places = placed(points)
    responses = np.array([point.response for point in points], np.float32)
    chosen = spread(places, responses, small.shape, cells=_CELLS, most=most)
    upscaled = np.asarray(places[chosen] / np.array([factor, factor, factor, 1]), np.float32)
    # OpenCV begins at the finest octave of those given: one of it leaves the descriptors as they are with all points
    finest = min(points, key=lambda point: (point.octave + 128) & 255)
    _, descriptors = detector.compute(small, [*(points[at] for at in chosen), finest])
    return upscaled, np.asarray(descriptors[:-1], np.float32)


@cache
def _mirrored_bins() -> NDArray[np.int64]:
    """4 x 4 places around the point, its direction along the second, with 8 directions each."""
    bins = np.arange(len(_MEAN)).reshape(4, 4, 8)
    return np.asarray(bins[::-1][:, :, (-np.arange(8)) % 8].ravel())


@cache
def _projections() -> NDArray[np.float32]:
    rng = np.random.default_rng(20261121)
    rotations = [np.linalg.qr(rng.standard_normal((len(_MEAN), len(_MEAN))))[0] for _ in range(2)]
    return np.hstack(rotations).astype(np.float32)


def _signatures(descriptors: NDArray[np.float32]) -> Signatures:
    roots = np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-9))
    packed = np.packbits((roots - _MEAN) @ _projections() > 0, axis=1)
    return np.ascontiguousarray(packed).view(np.uint64)


KEPT_SIDE = 1024
LARGEST_PIXELS = 150_000_000
_QUALITY = 90

CACHE_VERSION = digest([VERSION, LARGEST_SIDE, MOST_FEATURES, KEPT_SIDE, _QUALITY, cv2.__version__])[:12]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """An image as it is looked for. The features' places are in pixels of ``gray``, the image at ``KEPT_SIDE``."""

    sha256: str
    hash: PerceptualHash | None
    features: Features
    jpeg: NDArray[np.uint8]

    @property
    def gray(self) -> Gray:
        """The grey image, decoded anew."""
        return np.asarray(cv2.imdecode(self.jpeg, cv2.IMREAD_GRAYSCALE), np.uint8)


def upright(data: bytes) -> Image.Image:
    """The image of a file. Raises ``RowError`` when it is not one sound image."""
    probed = probe(data, max_pixels=LARGEST_PIXELS)
    return decode(data) if probed.plain is None else probed.plain


def fingerprint(data: bytes) -> Fingerprint:
    """Computes it. Raises ``RowError`` when ``data`` is not one sound image."""
    image = upright(data)
    gray = gray_pixels(image)
    local = features(gray)
    factor = min(1.0, KEPT_SIDE / max(gray.shape))
    options = [cv2.IMWRITE_JPEG_QUALITY, _QUALITY]
    jpeg = np.asarray(cv2.imencode(".jpg", scaled(gray, factor), options)[1], np.uint8)
    places = local.places * np.array([factor, factor, factor, 1], np.float32)
    return Fingerprint(digest_bytes(data), perceptual_hash(image), Features(places, local.signatures), jpeg)


class FingerprintCache:
    """Fingerprints below a folder, each computed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, data: bytes) -> Fingerprint:
        """The fingerprint of a file's bytes. Raises ``RowError`` when they are not one sound image."""
        sha256 = digest_bytes(data)
        if self._path(sha256).exists():
            return self.read(sha256)
        computed = fingerprint(data)
        write_whole(self._path(sha256), _packed(computed))
        return computed

    def read(self, sha256: str) -> Fingerprint:
        """A fingerprint that was computed before."""
        with np.load(self._path(sha256), allow_pickle=False) as kept:
            turns = tuple(int(turn) for turn in kept["turns"])
            return Fingerprint(
                sha256,
                PerceptualHash(turns) if turns else None,
                Features(kept["places"], kept["signatures"]),
                kept["jpeg"],
            )

    def _path(self, sha256: str) -> Path:
        return self.folder / f"pictures-{CACHE_VERSION}" / sha256[:2] / f"{sha256}.npz"


def _packed(of: Fingerprint) -> bytes:
    buffer = io.BytesIO()
    turns = np.array(of.hash.turns if of.hash else (), np.uint64)
    np.savez(buffer, turns=turns, places=of.features.places, signatures=of.features.signatures, jpeg=of.jpeg)
    return buffer.getvalue()
