"""Images of benchmarks that a training image shows: the same bytes, the same image, or a part of one in the other.

An index of the features of all benchmark images proposes a few, for the image and for its mirror image; hashes propose
others. ``same_image`` tells whether one of them is the image (cut, turned, mirrored, written on); if not, the pixels
tell whether a part of one is in the other. Fingerprints are computed once and cached on disk by content:

    <folder>/pictures-<version>/ab/abcdef….npz   one per image, by the sha256 of its bytes
    <folder>/rows-<version>/<benchmark>-<digest>.json   its rows: texts and the images' digests

Files are written atomically: an interrupted build resumes. About 300 kB per image of 1500 pixels.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkroom.pipelines.records import ImageRef
from darkroom.pipelines.records.digest import digest, digest_bytes
from darkroom.pipelines.selection.decontamination.alignment import Proposal, align, propose
from darkroom.pipelines.selection.decontamination.benchmarks import ContaminationKind
from darkroom.pipelines.selection.duplicates.local_features import (
    Features,
    Gray,
    PartIndex,
    Sought,
    features_of_both,
    scaled,
)
from darkroom.pipelines.selection.duplicates.looks import (
    BITS,
    TURNS,
    PerceptualHash,
    gray_pixels,
    look_of_gray,
    perceptual_hash,
)
from darkroom.pipelines.selection.duplicates.same_image import HASH_BITS, ImageComparison, same_image
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.storage.media_validation import probe

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


def fingerprint(data: bytes) -> Fingerprint:
    """Computes it. Raises ``RowError`` when ``data`` is not one sound image."""
    probed = probe(data, max_pixels=LARGEST_PIXELS)
    image = probed.plain or probed.image
    gray = gray_pixels(image)
    local = features_of_both(gray, SOUGHT)[0]
    factor = min(1.0, KEPT_SIDE / max(gray.shape))
    jpeg = np.asarray(cv2.imencode(".jpg", scaled(gray, factor), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1], np.uint8)
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
        turns = np.array(computed.hash.turns if computed.hash else (), np.uint64)
        features = computed.features
        buffer = io.BytesIO()
        np.savez(buffer, turns=turns, places=features.places, signatures=features.signatures, jpeg=computed.jpeg)
        write_whole(self._path(sha256), buffer.getvalue())
        return computed

    def read(self, sha256: str) -> Fingerprint:
        """A fingerprint that was computed before."""
        with np.load(self._path(sha256), allow_pickle=False) as stored:
            turns = tuple(int(turn) for turn in stored["turns"])
            features = Features(stored["places"], stored["signatures"])
            return Fingerprint(sha256, PerceptualHash(turns) if turns else None, features, stored["jpeg"])

    def _path(self, sha256: str) -> Path:
        return self.folder / f"pictures-{CACHE_VERSION}" / sha256[:2] / f"{sha256}.npz"


_CANDIDATES = 5
_MOST_PAIRS = 128
_OF_QUERY = replace(SOUGHT, most=1024)
"""Of a copy of half the size, or half as many: screenshots of pages would be missed."""


class ImageMatch(NamedTuple):
    """Image number ``image`` was seen."""

    image: int
    kind: ContaminationKind
    score: float
    detail: str


class ImageIndex:
    """All images of all benchmarks."""

    def __init__(self, images: Sequence[Fingerprint]) -> None:
        self._images = images
        self._numbers = {image.sha256: number for number, image in enumerate(images)}
        self._hashed = [number for number, image in enumerate(images) if image.hash]
        self._hashes = np.array([image.hash.bits for image in images if image.hash], np.uint64)
        self._parts = PartIndex([image.features for image in images])
        # about 120 MB
        self._look = lru_cache(4_096)(lambda number: look_of_gray(images[number].gray, images[number].hash))

    def find(self, image: Image.Image, sha256: str) -> list[ImageMatch]:
        """The images that ``image`` shows, each once: the plainest evidence counts."""
        if sha256 in self._numbers:
            return [ImageMatch(self._numbers[sha256], "image", 1.0, "the same bytes")]
        large, phash = gray_pixels(image), perceptual_hash(image)
        gray = scaled(large, min(1.0, KEPT_SIDE / max(large.shape)))  # the side at which images are kept
        sides = features_of_both(gray, _OF_QUERY)
        proposed = [(bool(n), *proposals) for n, side in enumerate(sides) for proposals in self._proposals(side)]
        numbers = sorted({number for _, number, _ in proposed}.union(self._near(phash) if phash else ()))
        look = look_of_gray(gray, phash) if numbers else None
        same = {number: compared for number in numbers if look and (compared := same_image(look, self._look(number)))}
        near = [ImageMatch(n, "near_image", twin.agreeing, self._evidence(phash, n, twin)) for n, twin in same.items()]
        parts: dict[int, ImageMatch] = {}
        for is_mirrored, number, proposals in proposed:
            if number not in same and (part := self._part(gray, number, proposals, is_mirrored)):
                parts.setdefault(number, part)
        return [*near, *parts.values()]

    def _proposals(self, side: Features) -> Iterator[tuple[int, list[Proposal]]]:
        """Images that share most places with a query, and how they lie in it: where enough of these agree."""
        alike = self._parts.most_alike(side.signatures, n_images=_CANDIDATES, n_features=_MOST_PAIRS)
        for number, of_query, of_image in alike:
            image = self._images[number]
            longer_side = max(Image.open(io.BytesIO(image.jpeg.tobytes())).size)
            if proposals := list(propose(side.places[of_query], image.features.places[of_image], longer_side)):
                yield number, proposals

    def _near(self, phash: PerceptualHash) -> Iterator[int]:
        least = np.bitwise_count(np.array(phash.turns, np.uint64)[:, None] ^ self._hashes[None, :]).min(axis=0)
        yield from (self._hashed[at] for at in np.argsort(least, kind="stable")[:_CANDIDATES] if least[at] <= HASH_BITS)

    def _evidence(self, phash: PerceptualHash | None, number: int, match: ImageComparison) -> str:
        shares = f"{match.agreeing:.0%} of the details agree where both show something, {match.overlap:.0%} of the area"
        hashed = self._images[number].hash
        if phash is not None and hashed is not None:
            bits, turn = min(((bits ^ hashed.bits).bit_count(), turn) for turn, bits in enumerate(phash.turns))
            if bits <= HASH_BITS:
                return f"{bits} of {BITS} bits differ{', ' if turn else ''}{TURNS[turn]}; {shares}"
        return shares + (", mirrored" if match.mirrored else "")

    def _part(self, gray: Gray, number: int, proposals: list[Proposal], is_mirrored: bool) -> ImageMatch | None:
        turned = np.ascontiguousarray(gray[:, ::-1]) if is_mirrored else gray
        overlap = align(turned, self._images[number].gray, proposals)
        if overlap is None or not overlap.same:
            return None
        detail = (
            f"{overlap.of_query:.0%} of the training image and {overlap.of_image:.0%} of the benchmark's are the same, "
            f"correlation {overlap.correlation:.3f}, {overlap.n_agreeing} features agree"
        )
        detail += ", mirrored" if is_mirrored else ""
        return ImageMatch(number, "image_part", overlap.correlation, detail)


def shown_parts(images: Sequence[ImageRef], store: ImageStore) -> Iterator[tuple[ImageRef, ImageRef, ImageMatch]]:
    """Images that show another one of these or a part of it, as screenshots and collages do: candidates for a person to
    look at. Memory: all fingerprints. Raises ``RowError`` for an image that cannot be read."""
    index = ImageIndex([fingerprint(store.read(image)) for image in images])
    for number, image in enumerate(images):
        for match in index.find(store.open(image), ""):
            if match.image != number:
                yield image, images[match.image], match
