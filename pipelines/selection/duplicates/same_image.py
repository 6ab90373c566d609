"""Whether two looks are one image, although one was cut, turned, mirrored, written on, or encoded anew.

The frame comes from the hashes (the whole image, in a quarter turn or mirrored) or from the features that most others
agree with; the pixels decide. Both are compared place by place: where one of the two has details, do the other's
correlate? An image that was written on differs in one compact region. A chart of the same template with other numbers,
or another page of a document, differs all over. The verdict on two looks does not depend on their order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from pipelines.selection.duplicates.looks import SIGNATURE_WORDS, Features, Gray, Look, Places, Signatures, placed
from pipelines.vision.refinement import details, refined
from pipelines.vision.registration import Matrix, laid_over

HASH_BITS = 12
"""Hashes of 64 bits that differ in as few may be of one image; the pixels tell."""

_SAME_PLACE = 64
_FEWEST = 4
_SMALLEST_SIDE = 16
_SURE = 12
"""So many agreeing features give the right frame: if the pixels differ there, the images do."""
_EXACT = 25
"""So many give it to a fraction of a pixel; a frame of fewer is refined on the pixels."""
_NEAR = 0.03
_MIN_OVERLAP = 0.6
"""Of what the two show together, the share that both show."""
_HOPELESS_OVERLAP = 0.5
"""Below, the pixels are not looked at: refining a frame changes the overlap by 0.01 at most (tuning set)."""
_MARGIN = 0.06
"""Left out on every side: a turn by two degrees leaves its corners there."""
_DETAILS = 4.0
"""Variance, squared grey levels, from which a place has details."""
_SIGMAS, _WINDOW = (1.0, 4.0), (15, 15)
_FINE_SIGMAS, _FINE_WINDOW, _FINE_ALIKE, _FINE_ALL = (0.5, 1.5), (9, 9), 0.7, 0.85
"""For print: tables with other numbers agree in 0.55 to 0.61 of it, the same ones turned or cut in 0.96 and more."""
_PRINT = 200.0
"""Variance from which details are print: what is fainter vanishes in a brighter copy."""
_PLAIN_GROUND = 0.4
_ALIKE = 0.6
"""Correlation of the details around a place from which the two agree there."""
_ALL = 0.9
_PHOTOGRAPH = 0.75
_PHOTOGRAPH_COVERED = 0.5
_WRITTEN_ON = 0.5
_COMPACT = 0.3
_SPECK = 0.004
_PROMISING = 0.35
"""Share agreeing from which a frame of few features is refined; of same images that need it, 0.43 and more."""
_N_STEPS, _EPSILON = 20, 1e-3


@dataclass(frozen=True, slots=True)
class ImageComparison:
    """Two images laid over each other. All are shares, 0..1.

    ``overlap``: of the area that the two cover, what both do; ``agreeing``: of the places with details, those that
    agree; ``covered``: of the overlap, those; ``region``: of the image, the box around the places that differ.
    """

    overlap: float
    agreeing: float
    covered: float
    region: float
    mirrored: bool = False

    @property
    def same(self) -> bool:
        """Whether the two are one image."""
        if self.overlap < _MIN_OVERLAP:
            return False
        is_photograph = self.covered >= _PHOTOGRAPH_COVERED and self.agreeing >= _PHOTOGRAPH
        is_written_on = self.region <= _COMPACT and self.agreeing >= _WRITTEN_ON
        return self.agreeing >= _ALL or is_photograph or is_written_on


def same_image(look: Look, beside: Look) -> ImageComparison | None:
    """How the two agree if they are one image; None if they are not."""
    first, second = sorted((look, beside), key=lambda one: one.jpeg)
    if first.jpeg == second.jpeg:
        return ImageComparison(1.0, 1.0, 1.0, 0.0)
    grays = (first.gray, second.gray)
    for gray, matrix, is_mirrored, n_agreeing in _frames(first, second, *grays):
        compared = _laid_over(gray, grays[1], matrix, is_mirrored)
        if compared is not None and not compared.same and 0 < n_agreeing < _EXACT and compared.agreeing >= _PROMISING:
            compared = _laid_over(
                gray, grays[1], refined(gray, grays[1], matrix, n_steps=_N_STEPS, epsilon=_EPSILON), is_mirrored
            )
        if compared is not None and compared.same and _same_print(gray, grays[1], matrix):
            return compared
    return None


def _same_print(gray: Gray, beside: Gray, matrix: Matrix) -> bool:
    """Whether drawings on a plain ground also agree in their print; other images have none that would tell.

    A table with other numbers has its lines and its blots of ink where the first has them.
    """
    if min(_plain_share(gray), _plain_share(beside)) < _PLAIN_GROUND:
        return True
    return any(
        _print_agrees(gray, beside, frame)
        for frame in (matrix, refined(gray, beside, matrix, n_steps=_N_STEPS, epsilon=_EPSILON))
    )


def _print_agrees(gray: Gray, beside: Gray, matrix: Matrix) -> bool:
    overlay = laid_over(beside, matrix, gray.shape[::-1], border=cv2.BORDER_REPLICATE)
    alike, energy = _alike(gray, overlay.pixels, _FINE_SIGMAS, _FINE_WINDOW)
    detailed = (energy > _PRINT) & _inner(overlay.coverage == 255)
    rows, columns = np.nonzero(detailed & (alike <= _FINE_ALIKE))
    if len(rows) <= (1 - _FINE_ALL) * detailed.sum():
        return True
    (top, bottom), (left, right) = (np.percentile(at, (5, 95)) for at in (rows, columns))
    return bool((bottom - top) * (right - left) <= _COMPACT * gray.size)


def _plain_share(gray: Gray) -> float:
    """The share of the image that has its commonest grey level, give or take two."""
    counts = np.bincount(gray.ravel(), minlength=256)
    return float(np.convolve(counts, np.ones(5), "same").max() / gray.size)


def _frames(first: Look, second: Look, gray: Gray, second_gray: Gray) -> Iterator[tuple[Gray, Matrix, bool, int]]:
    """The first image, turned or mirrored where need be, the matrix that takes its places to the second's, whether it
    was mirrored, and how many features agree with that (0: it is the whole image)."""
    if first.hash is not None and second.hash is not None:
        for turn, bits in enumerate(first.hash.turns):
            if (bits ^ second.hash.bits).bit_count() <= HASH_BITS:
                side = gray[:, ::-1] if turn >= 4 else gray
                turned = np.ascontiguousarray(np.rot90(side, turn % 4))
                yield turned, _whole(turned, second_gray), turn >= 4, 0
    sides, longer, most = (gray, np.ascontiguousarray(gray[:, ::-1])), max(second_gray.shape), 0
    for is_mirrored in (False, True):
        matrix, n = _pose(first.features[is_mirrored], second.features[0], longer)
        most = max(most, n)
        if n >= _FEWEST:
            yield sides[is_mirrored], matrix, is_mirrored, n
    for is_mirrored in (False, True) if most < _SURE else ():
        matrix, n = _pose(_sift(first.jpeg, is_mirrored), _sift(second.jpeg, False), longer)
        if n >= _FEWEST:
            yield sides[is_mirrored], matrix, is_mirrored, n


def _whole(gray: Gray, beside: Gray) -> Matrix:
    """All of one onto all of the other, pixel centres on pixel centres."""
    across, down = beside.shape[1] / gray.shape[1], beside.shape[0] / gray.shape[0]
    return np.array([[across, 0, (across - 1) / 2], [0, down, (down - 1) / 2]])


@lru_cache(maxsize=1024)
def _sift(jpeg: bytes, mirrored: bool) -> Features:
    """More and better ones, for the few pairs whose quick ones leave it open; signatures are signs about two levels."""
    gray = np.asarray(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE), np.uint8)
    side = np.ascontiguousarray(gray[:, ::-1]) if mirrored else gray
    detector = cv2.SIFT.create(200, contrastThreshold=0.01)
    found = detector.detect(side) if min(side.shape) >= _SMALLEST_SIDE else ()  # OpenCV raises on a line of pixels
    if not len(found):
        return Features(placed(()), np.empty((0, SIGNATURE_WORDS), np.uint64))
    points, described = detector.compute(side, found)
    descriptors = np.asarray(described, np.float32)
    roots = np.sqrt(descriptors / np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-9))
    signs = np.packbits(np.hstack([roots > 0.06, roots > 0.12]), axis=1)
    return Features(placed(points), np.ascontiguousarray(signs).view(np.uint64))


def _pose(features: Features, beside: Features, side: int) -> tuple[Matrix, int]:
    """The similarity that most pairs of features agree with, and how many do."""
    pairs = _mutual(features.signatures, beside.signatures)
    if len(pairs) < _FEWEST:
        return np.eye(2, 3), 0
    here, there = features.places[pairs[:, 0]], beside.places[pairs[:, 1]]
    linears, shifts = _similarities(here, there)
    missed = np.einsum("mij,nj->mni", linears, here[:, :2]) + shifts[:, None] - there[None, :, :2]
    zooms = np.abs(np.log2(there[:, 2] / here[:, 2])[None] - np.log2(there[:, 2] / here[:, 2])[:, None])
    agreeing = (np.hypot(missed[..., 0], missed[..., 1]) <= _NEAR * side) & (zooms < 0.6)
    best = int(agreeing.sum(axis=1).argmax())
    chosen, n = agreeing[best], int(agreeing[best].sum())
    matrix = np.column_stack([linears[best], shifts[best]])
    if n < _FEWEST:
        return matrix, n
    points, points_there = (np.ascontiguousarray(places[chosen, :2]) for places in (here, there))
    fitted = cv2.estimateAffinePartial2D(points, points_there, ransacReprojThreshold=3.0)[0]
    return (matrix if fitted is None else np.asarray(fitted, np.float64)), n


def _mutual(signatures: Signatures, beside: Signatures) -> NDArray[np.int64]:
    """Pairs of signatures, each the other's nearest."""
    if not len(signatures) or not len(beside):
        return np.empty((0, 2), np.int64)
    words = zip(signatures.T, beside.T, strict=True)  # word by word: three times as fast as a sum over an axis of four
    distances = sum(np.bitwise_count(own[:, None] ^ other[None]).astype(np.uint16) for own, other in words)
    nearest, back = distances.argmin(axis=1), distances.argmin(axis=0)
    here = np.arange(len(signatures))
    kept = (back[nearest] == here) & (distances[here, nearest] <= _SAME_PLACE)
    return np.stack([here[kept], nearest[kept]], axis=1)


def _similarities(here: Places, there: Places) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of every pair the similarity that takes one place to the other: (n, 2, 2) and (n, 2)."""
    scale = (there[:, 2] / here[:, 2]).astype(np.float64)
    turn = np.deg2rad((there[:, 3] - here[:, 3]).astype(np.float64))
    cos, sin = scale * np.cos(turn), scale * np.sin(turn)
    linears = np.stack([np.stack([cos, -sin], axis=1), np.stack([sin, cos], axis=1)], axis=1)
    return linears, there[:, :2] - np.einsum("nij,nj->ni", linears, here[:, :2])


def _laid_over(gray: Gray, beside: Gray, matrix: Matrix, is_mirrored: bool) -> ImageComparison | None:
    """None where the two share less than half of what they show, or nothing with details."""
    overlay = laid_over(beside, matrix, gray.shape[::-1], border=cv2.BORDER_REPLICATE)
    inside = overlay.coverage == 255
    of_gray = float(inside.mean())
    of_beside = min(1.0, float(inside.sum() * abs(np.linalg.det(matrix[:, :2])) / beside.size))
    overlap = 1 / (1 / of_gray + 1 / of_beside - 1) if min(of_gray, of_beside) > 0 else 0.0
    if overlap < _HOPELESS_OVERLAP:
        return None
    inner = _inner(inside)
    alike, energy = _alike(gray, overlay.pixels, _SIGMAS, _WINDOW)
    detailed = (energy > _DETAILS) & inner
    agreeing = detailed & (alike > _ALIKE)
    n_detailed = int(detailed.sum())
    if not n_detailed:
        return None
    region = _region(detailed & ~agreeing)
    return ImageComparison(
        overlap, float(agreeing.sum() / n_detailed), float(agreeing.sum() / inner.sum()), region, is_mirrored
    )


def _inner(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The overlap without what lies beside its edge or in the margin."""
    height, width = inside.shape
    inner = cv2.erode(inside.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    top, left = round(height * _MARGIN), round(width * _MARGIN)
    kept = np.zeros_like(inside)
    kept[top : height - top, left : width - left] = True
    return np.asarray(inner & kept)


def _alike(
    gray: Gray, beside: Gray, sigmas: tuple[float, float], window: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Around every place the correlation of the details, whatever their brightness, and the larger of the variances."""
    levels, levels_beside = details(gray, *sigmas), details(beside, *sigmas)
    own = cv2.boxFilter(levels * levels, -1, window)
    of_beside = cv2.boxFilter(levels_beside * levels_beside, -1, window)
    both = cv2.boxFilter(levels * levels_beside, -1, window)
    energy = np.maximum(own, of_beside)
    alike = both / np.sqrt(own * of_beside + 1e-6)
    alike[np.minimum(own, of_beside) < 0.02 * energy] = 0.0
    return np.asarray(alike, np.float32), np.asarray(energy, np.float32)


def _region(differing: NDArray[np.bool_]) -> float:
    """The box around all that differs, specks left out, as a share of the image."""
    opened = cv2.morphologyEx(differing.astype(np.uint8), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    stats = np.asarray(cv2.connectedComponentsWithStats(opened)[2])[1:]
    large = stats[stats[:, cv2.CC_STAT_AREA] > _SPECK * differing.size]
    if not len(large):
        return 0.0
    left, top = large[:, cv2.CC_STAT_LEFT], large[:, cv2.CC_STAT_TOP]
    width = (left + large[:, cv2.CC_STAT_WIDTH]).max() - left.min()
    height = (top + large[:, cv2.CC_STAT_HEIGHT]).max() - top.min()
    return float(width * height / differing.size)
