"""Pictures of benchmarks that a training image shows: the same bytes, the same look, or a part of one in the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from pipelines.decontamination.alignment import Aligned, align
from pipelines.decontamination.base import ContaminationKind
from pipelines.decontamination.features import Gray, features, gray_pixels, scaled
from pipelines.decontamination.fingerprints import KEPT_SIDE, Fingerprint
from pipelines.decontamination.parts import PartIndex
from pipelines.duplicates import MAX_DISTANCE, PictureHash, picture_hash
from pipelines.duplicates.perceptual import BITS, TURNS

_MOST_FEATURES = 1024


class Seen(NamedTuple):
    """Picture number ``picture`` was seen."""

    picture: int
    kind: ContaminationKind
    score: float
    detail: str


class PictureIndex:
    """All pictures of all benchmarks."""

    def __init__(self, pictures: Sequence[Fingerprint], *, max_distance: int = MAX_DISTANCE) -> None:
        self._pictures, self._max_distance = pictures, max_distance
        self._numbers = {picture.sha256: number for number, picture in enumerate(pictures)}
        self._hashed = [number for number, picture in enumerate(pictures) if picture.hash]
        self._hashes = np.array([picture.hash.bits for picture in pictures if picture.hash], np.uint64)
        self._parts = PartIndex([picture.features for picture in pictures])

    def find(self, image: Image.Image, sha256: str) -> list[Seen]:
        """The pictures that ``image`` shows, each once: the plainest evidence counts."""
        if sha256 in self._numbers:
            return [Seen(self._numbers[sha256], "image", 1.0, "the same bytes")]
        found = picture_hash(image)
        near = self._near(found) if found else []
        known = {seen.picture for seen in near}
        return near + [seen for seen in self._shown(scaled_down(gray_pixels(image))) if seen.picture not in known]

    def _near(self, found: PictureHash) -> list[Seen]:
        turns = np.array(found.turns, np.uint64)
        distances = np.bitwise_count(turns[:, None] ^ self._hashes[None, :])
        turn = distances.argmin(axis=0)
        least = distances.min(axis=0)
        return [
            Seen(self._hashed[at], "near_image", 1 - int(least[at]) / BITS, _difference(int(least[at]), int(turn[at])))
            for at in np.flatnonzero(least <= self._max_distance)
        ]

    def _shown(self, gray: Gray) -> list[Seen]:
        found = features(gray, most=_MOST_FEATURES)
        aligned = [
            (
                shared.picture,
                align(
                    gray,
                    self._pictures[shared.picture].gray,
                    found.places[shared.of_query],
                    self._pictures[shared.picture].features.places[shared.of_picture],
                ),
            )
            for shared in self._parts.candidates(found)
        ]
        return [
            Seen(picture, "image_part", overlap.correlation, _overlap(overlap))
            for picture, overlap in aligned
            if overlap and overlap.same
        ]


def scaled_down(gray: Gray) -> Gray:
    """At the side at which pictures are kept."""
    return scaled(gray, min(1.0, KEPT_SIDE / max(gray.shape)))


def _difference(distance: int, turn: int) -> str:
    turned = f", {TURNS[turn]}" if TURNS[turn] else ""
    return f"{distance} of {BITS} bits differ{turned}"


def _overlap(found: Aligned) -> str:
    return (
        f"{found.of_query:.0%} of the training image and {found.of_picture:.0%} of the benchmark's are the same, "
        f"correlation {found.correlation:.3f}, {found.n_agreeing} features agree"
    )
