"""What is kept of a benchmark's picture so that it is found again; computed once, kept on disk by content.

    <folder>/pictures-<version>/ab/abcdef….npz   one per picture, by the sha256 of its bytes
    <folder>/rows-<version>/<benchmark>-<digest>.json   its rows: texts and the pictures' digests

A file is there whole or not at all, so an interrupted build goes on where it stopped and a finished one reads nothing
but this folder. About 300 kB per picture of 1500 pixels.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.decoding import decode, probe
from pipelines.decontamination.features import (
    LARGEST_SIDE,
    MOST_FEATURES,
    VERSION,
    Features,
    Gray,
    features,
    gray_pixels,
)
from pipelines.decontamination.features import scaled as made_smaller
from pipelines.digest import digest, digest_bytes
from pipelines.duplicates.perceptual import PictureHash, picture_hash
from pipelines.whole import write_whole

KEPT_SIDE = 1024
LARGEST_PIXELS = 150_000_000
_QUALITY = 90

CACHE_VERSION = digest([VERSION, LARGEST_SIDE, MOST_FEATURES, KEPT_SIDE, _QUALITY, cv2.__version__])[:12]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A picture as it is looked for. The features' places are in pixels of ``gray``, the picture at ``KEPT_SIDE``."""

    sha256: str
    hash: PictureHash | None
    features: Features
    jpeg: NDArray[np.uint8]

    @property
    def gray(self) -> Gray:
        """The grey picture, decoded anew."""
        return np.asarray(cv2.imdecode(self.jpeg, cv2.IMREAD_GRAYSCALE), np.uint8)


def upright(data: bytes) -> Image.Image:
    """The picture of a file. Raises ``RowFault`` when it is not one sound image."""
    found = probe(data, max_pixels=LARGEST_PIXELS)
    return decode(data) if found.plain is None else found.plain


def fingerprint(data: bytes) -> Fingerprint:
    """Computes it. Raises ``RowFault`` when ``data`` is not one sound image."""
    image = upright(data)
    gray = gray_pixels(image)
    found = features(gray)
    factor = min(1.0, KEPT_SIDE / max(gray.shape))
    options = [cv2.IMWRITE_JPEG_QUALITY, _QUALITY]
    jpeg = np.asarray(cv2.imencode(".jpg", made_smaller(gray, factor), options)[1], np.uint8)
    places = found.places * np.array([factor, factor, factor, 1], np.float32)
    return Fingerprint(digest_bytes(data), picture_hash(image), Features(places, found.signatures), jpeg)


class FingerprintCache:
    """Fingerprints below a folder, each computed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, data: bytes) -> Fingerprint:
        """The fingerprint of a file's bytes. Raises ``RowFault`` when they are not one sound image."""
        sha256 = digest_bytes(data)
        if self._path(sha256).exists():
            return self.read(sha256)
        found = fingerprint(data)
        write_whole(self._path(sha256), _packed(found))
        return found

    def read(self, sha256: str) -> Fingerprint:
        """A fingerprint that was computed before."""
        with np.load(self._path(sha256), allow_pickle=False) as kept:
            turns = tuple(int(turn) for turn in kept["turns"])
            return Fingerprint(
                sha256,
                PictureHash(turns) if turns else None,
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
