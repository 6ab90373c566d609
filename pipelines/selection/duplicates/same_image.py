"""Decide whether two looks are one image, although one was cut, turned, mirrored, written on, or encoded anew.

The frame comes from the hashes (the whole image, in a quarter turn or mirrored) or from the similarity that most pairs
of matching features agree with; the pixels decide. Both are compared place by place: where one of the two has details,
do the other's correlate? An image that was written on differs in one compact region; a chart of the same template with
other numbers, another page of a document, or a form that was filled in otherwise differs in many places. Where details
are few (a sky, a wall), those of a copy four times smaller decide, the shading: without the places where something was
put on one of the two. The verdict does not depend on the order of the two.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import cv2
import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.local_features import Features, Gray, Places, Signatures, scaled
from darkroom.pipelines.selection.duplicates.looks import Look
from darkroom.pipelines.selection.duplicates.overlaid import ComparedPlaces, Mask, Overlaid, Scale
from darkroom.pipelines.vision.registration import Matrix, refined

HASH_BITS = 12
"""Hashes of 64 bits that differ in as few may be of one image; the pixels tell."""

_EXACT = 25
"""So many give it to a fraction of a pixel; a frame of fewer is refined on the pixels."""
_MIN_OVERLAP = 0.6
"""Of what the two show together, the share that both show."""
_DETAILS = Scale(sigmas=(1.0, 4.0), window=15, variance=4.0, alike=0.6)
_SHADES = replace(_DETAILS, variance=1.0, margin=0.12)
"""Of a copy ``_COARSE`` times smaller: its noise is lower, and corners reach further."""
_PRINT = Scale(sigmas=(0.5, 1.5), window=9, variance=200.0, alike=0.7)
"""What is fainter than print vanishes in a brighter copy."""
_INK = Scale(sigmas=(0.5, 2.5), window=13, variance=150.0, alike=0.7)
"""Bars, letters and marks in the sizes that fill in a form or a chart."""
_PRINT_ALL = 0.85
"""Tables with other numbers agree in 0.55 to 0.61 of their print, the same ones turned or cut in 0.96 and more."""
_PLAIN_GROUND = 0.4
_ALL = 0.9
_PHOTOGRAPH = 0.75
_PHOTOGRAPH_COVERED = 0.5
_WRITTEN_ON = 0.5
_COMPACT = 0.3
_PROMISING = 0.35
"""Share agreeing from which a frame of few features is refined; of same images that need it, 0.43 and more."""
_N_STEPS, _EPSILON = 20, 1e-3
_COARSE = 4
_SHADING = 0.75
"""Of the places with shading: nearly all same images agree in 0.84 and more, other smooth ones in 0.62 and less (tuning
set, and one caption on several)."""
_SHADING_COVERED = 0.3
_FEW = 0.25
"""Share of the overlap with details that agree: below, they may be a watermark that both bear."""
_MOVED, _REPLACED = 0.001, 0.02
"""Of the image. Of 173 smooth images with a caption 170 stay below both; so do 4 of 780 pairs of birds in one sky, and
none of 276 pairs of things before one backdrop (tuning set)."""


@dataclass(frozen=True, slots=True)
class ImageComparison:
    """Two images laid over each other, in shares, 0..1. ``overlap``: of the area that the two cover, what both do;
    ``agreeing``: of the places with details, those that agree; ``covered``: of the overlap, those; ``region``: of the
    image, the box around the places that differ."""

    overlap: float
    agreeing: float
    covered: float
    region: float
    mirrored: bool = False

    @classmethod
    def of(cls, overlaid: Overlaid, places: ComparedPlaces) -> Self:
        """Agreement of the compared places."""
        return cls(overlaid.overlap, places.share_agreeing, places.covered, places.region)

    @property
    def same(self) -> bool:
        """True if the two are one image."""
        if self.overlap < _MIN_OVERLAP:
            return False
        is_photograph = self.covered >= _PHOTOGRAPH_COVERED and self.agreeing >= _PHOTOGRAPH
        is_written_on = self.region <= _COMPACT and self.agreeing >= _WRITTEN_ON
        return self.agreeing >= _ALL or is_photograph or is_written_on

    @property
    def same_shading(self) -> bool:
        """True if the two may be one image, to be decided by their shading."""
        return self.overlap >= _MIN_OVERLAP and self.agreeing >= _SHADING


def same_image(look: Look, beside: Look) -> ImageComparison | None:
    """Compare two looks; None unless they are one image."""
    first, second = sorted((look, beside), key=lambda one: one.jpeg)
    if first.jpeg == second.jpeg:
        return ImageComparison(1.0, 1.0, 1.0, 0.0)
    if not (frames := list(_frames(first, second))):  # most proposals: no pixels need be decoded
        return None
    first_gray, second_gray = first.gray, second.gray
    for frame in frames:
        gray = frame.turned(first_gray)
        matrix = _whole(gray, second_gray) if frame.matrix is None else frame.matrix
        compared = _same_details(gray, second_gray, matrix, frame.n_agreeing)
        if compared is not None and _same_print(gray, second_gray, matrix):
            return replace(compared, mirrored=frame.mirrored)
    return None


def _same_details(gray: Gray, beside: Gray, matrix: Matrix, n_agreeing: int) -> ImageComparison | None:
    """Compare the details; where these are few, the shading must agree too. None unless they agree."""
    if (overlaid := Overlaid.by(matrix, gray, beside)) is None:
        return None
    places = overlaid.places(_DETAILS)
    compared = ImageComparison.of(overlaid, places)
    if not compared.same and 0 < n_agreeing < _EXACT and compared.agreeing >= _PROMISING:
        better = _refined(gray, beside, matrix, places.differing)
        overlaid = Overlaid.by(better, gray, beside)
        if overlaid is not None and (places_better := overlaid.places(_DETAILS)).share_agreeing > compared.agreeing:
            matrix, places, compared = better, places_better, ImageComparison.of(overlaid, places_better)
    if compared.same and compared.covered >= _FEW:
        return compared
    if compared.region > _COMPACT or places.moved > _MOVED or places.replaced > _REPLACED:
        return None
    shading = _shading(gray, beside, matrix, places.differing)
    if shading is None or (compared.same and shading.same_shading):
        return compared if compared.same else None
    return shading if shading.same_shading and shading.covered >= _SHADING_COVERED else None


def _shading(gray: Gray, beside: Gray, matrix: Matrix, left_out: Mask) -> ImageComparison | None:
    """Compare the details of small copies, outside what was put on one of them."""
    small, small_beside = (scaled(side, 1 / _COARSE) for side in (gray, beside))
    frame = rescaled(matrix, gray, small, beside, small_beside)
    touched = scaled(left_out.astype(np.uint8) * 255, 1 / _COARSE) > 0
    mask = cv2.dilate(touched.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
    compared = _shades(small, small_beside, frame, mask)
    if compared is None or compared.same_shading or compared.agreeing < _PROMISING:
        return compared
    return _shades(small, small_beside, _refined(small, small_beside, frame), mask)


def _shades(small: Gray, beside: Gray, matrix: Matrix, mask: Mask) -> ImageComparison | None:
    """None where the small copies hardly overlap or have no details."""
    if (overlaid := Overlaid.by(matrix, small, beside)) is None:
        return None
    overlaid = overlaid.without(mask)
    places = overlaid.places(_SHADES)
    return ImageComparison.of(overlaid, places) if places.detailed.any() else None


def rescaled(matrix: Matrix, gray: Gray, small: Gray, beside: Gray, small_beside: Gray) -> Matrix:
    """The frame of two images, between copies of other sizes; pixel centres on pixel centres."""
    own, others = _whole(small, gray), _whole(beside, small_beside)
    shift = others[:, :2] @ (matrix @ np.append(own[:, 2], 1)) + others[:, 2]
    return np.column_stack([others[:, :2] @ matrix[:, :2] @ own[:, :2], shift])


def _refined(gray: Gray, beside: Gray, matrix: Matrix, left_out: Mask | None = None) -> Matrix:
    return refined(gray, beside, matrix, n_steps=_N_STEPS, epsilon=_EPSILON, left_out=left_out)


def _same_print(gray: Gray, beside: Gray, matrix: Matrix) -> bool:
    """Check that nothing is filled in, drawn or marked otherwise, and that drawings on a plain ground agree in their
    print. A table with other numbers has its lines and its blots of ink where the first has them."""
    is_drawing = min(_plain_share(gray), _plain_share(beside)) >= _PLAIN_GROUND
    if _print_agrees(Overlaid.by(matrix, gray, beside), is_drawing):
        return True
    return _print_agrees(Overlaid.by(_refined(gray, beside, matrix), gray, beside), is_drawing)


def _print_agrees(overlaid: Overlaid | None, is_drawing: bool) -> bool:
    if overlaid is None or overlaid.places(_INK).is_scattered:
        return False
    if not is_drawing:
        return True
    places = overlaid.places(_PRINT)
    rows, columns = np.nonzero(places.detailed & ~places.agreeing)
    if len(rows) <= (1 - _PRINT_ALL) * places.detailed.sum():
        return True
    (y1, y2), (x1, x2) = (np.percentile(at, (5, 95)) for at in (rows, columns))
    return bool((y2 - y1) * (x2 - x1) <= _COMPACT * overlaid.gray.size)


def _plain_share(gray: Gray) -> float:
    """The share of the image that has its commonest grey level, give or take two."""
    return float(np.convolve(np.bincount(gray.ravel(), minlength=256), np.ones(5), "same").max() / gray.size)


class _Placement(NamedTuple):
    """Pose of the first image on the second: mirrored, then turned, then by the matrix (None: all on all).
    ``n_agreeing``: features that say so; 0: the hashes do."""

    mirrored: bool
    quarters: int = 0
    matrix: Matrix | None = None
    n_agreeing: int = 0

    def turned(self, gray: Gray) -> Gray:
        return np.ascontiguousarray(np.rot90(gray[:, ::-1] if self.mirrored else gray, self.quarters))


def _frames(first: Look, second: Look) -> Iterator[_Placement]:
    if first.hash is not None and second.hash is not None:
        for turn, bits in enumerate(first.hash.turns):
            if (bits ^ second.hash.bits).bit_count() <= HASH_BITS:
                yield _Placement(turn >= 4, turn % 4)
    for is_mirrored in (False, True):
        matrix, n = pose_of_features(first.features[is_mirrored], second.features[0], second.longer_side)
        if n >= FEWEST:
            yield _Placement(is_mirrored, 0, matrix, n)


def _whole(gray: Gray, beside: Gray) -> Matrix:
    """All of one onto all of the other, pixel centres on pixel centres."""
    across, down = beside.shape[1] / gray.shape[1], beside.shape[0] / gray.shape[0]
    return np.array([[across, 0, (across - 1) / 2], [0, down, (down - 1) / 2]])


FEWEST = 3
"""So many features that agree give a frame."""
_SAME_PLACE = 64
_NEAR = 0.03


def pose_of_features(features: Features, beside: Features, side: int) -> tuple[Matrix, int]:
    """The similarity that most pairs of features agree with, and how many do."""
    pairs = _mutual(features.signatures, beside.signatures)
    if len(pairs) < FEWEST:
        return np.eye(2, 3), 0
    here, there = features.places[pairs[:, 0]], beside.places[pairs[:, 1]]
    matrices, agreeing = similarities(here, there, near=_NEAR * side, zoom=0.6)
    best = int(agreeing.sum(axis=1).argmax())
    chosen, n = agreeing[best], int(agreeing[best].sum())
    return fitted(matrices[best], here[chosen], there[chosen]), n


def similarities(
    here: Places, there: Places, *, near: float, zoom: float, largest_zoom: float = np.inf
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The similarity that each pair of places proposes, (n, 2, 3), and which pairs agree with it, (n, n): those that
    it misses by at most ``near`` pixels, and whose size it misses by less than ``zoom`` powers of two."""
    zooms = there[:, 2] / here[:, 2]
    scale = np.clip(zooms, 1 / largest_zoom, largest_zoom)
    turn = np.deg2rad((there[:, 3] - here[:, 3]).astype(np.float64))
    cos, sin = scale.astype(np.float64) * (np.cos(turn), np.sin(turn))
    linears = np.stack([np.stack([cos, -sin], axis=1), np.stack([sin, cos], axis=1)], axis=1)
    shifts = there[:, :2] - np.einsum("nij,nj->ni", linears, here[:, :2])
    missed = np.einsum("mij,nj->mni", linears, here[:, :2]) + shifts[:, None] - there[None, :, :2]
    is_near = np.hypot(missed[..., 0], missed[..., 1]) <= near
    matrices = np.concatenate([linears, shifts[..., None]], axis=2)
    return matrices, is_near & (np.abs(np.log2(zooms)[None] - np.log2(scale)[:, None]) < zoom)


def fitted(matrix: Matrix, here: Places, there: Places) -> Matrix:
    """The similarity of all pairs that agree with ``matrix``, if there are enough of them."""
    if len(here) < FEWEST:
        return matrix
    points, points_there = (np.ascontiguousarray(places[:, :2]) for places in (here, there))
    better = cv2.estimateAffinePartial2D(points, points_there, ransacReprojThreshold=3.0)[0]
    is_fitted = better is not None and np.isfinite(better).all()  # points in one place give no similarity
    return np.asarray(better, np.float64) if is_fitted else matrix


def _mutual(signatures: Signatures, beside: Signatures) -> NDArray[np.int64]:
    """Pairs of signatures, each the other's nearest."""
    if not len(signatures) or not len(beside):
        return np.empty((0, 2), np.int64)
    words = zip(signatures.T, beside.T, strict=True)  # word by word: three times as fast as a sum over an axis of four
    distances = sum(np.bitwise_count(own[:, None] ^ theirs[None]).astype(np.uint16) for own, theirs in words)
    nearest, back = distances.argmin(axis=1), distances.argmin(axis=0)
    here = np.arange(len(signatures))
    is_near = (back[nearest] == here) & (distances[here, nearest] <= _SAME_PLACE)
    return np.stack([here[is_near], nearest[is_near]], axis=1)
