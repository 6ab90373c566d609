"""What is stored of a benchmark's image so that it is found again. Computed once and cached on disk by content:

    <folder>/pictures-<version>/ab/abcdef….npz   one per image, by the sha256 of its bytes
    <folder>/rows-<version>/<benchmark>-<digest>.json   its rows: texts and the images' digests

Files are written atomically: an interrupted build resumes, a finished one reads nothing but this folder. About 300 kB
per image of 1500 pixels.
"""

import io
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.selection.duplicates.local_features import Features, Gray, Sought, features_of_both, scaled
from darkroom.pipelines.selection.duplicates.looks import gray_pixels
from darkroom.pipelines.selection.duplicates.perceptual import PerceptualHash, perceptual_hash
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.media_validation import decode, probe

LARGEST_SIDE = 1536
MOST_FEATURES = 2048
VERSION = 1
"""Part of the cache's digest: raise it with anything that changes features."""

SOUGHT = Sought(most=MOST_FEATURES, largest_side=LARGEST_SIDE, contrast=0.01, cells=16)

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
    local = features_of_both(gray, SOUGHT)[0]
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
