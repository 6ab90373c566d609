"""Register one image in another by pixels: the turn, the scale and the shift that lay it over the other.

Local features of both are matched, a similarity is fitted to the matches and verified by laying the images over each
other: quick binary features (ORB) first, then SIFT, which also finds small parts that were enlarged. A mirrored image
is no similarity, so it is not found; nor is another image, a plain one, or one whose parts all look alike. Angles are
exact to about half a degree. Decontamination proposes similarities from an index of features
(``selection/decontamination/alignment.py``) and verifies them by the same ``laid_over`` and ``correlation``; it and
``selection/duplicates/same_image.py`` share the refinement to a fraction of a pixel.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkroom.pipelines.records.geometry import Box

Gray = NDArray[np.uint8]
Matrix = NDArray[np.float64]
"""A similarity, 2 x 3: takes a place of one image to its place in the other."""

_ORB_SIDES = (448, 800)
"""The longer side, pixels, at which images are compared: the second where the first is too small for print."""
_N_ORB_FEATURES = 600
_RIM = 24
"""Pixels. ORB sees nothing in the outermost 31, where a trimmed chart has its print."""
_REACH = 3.0
"""Pixels (of the small copies) by which a matched feature may miss its place."""
_MIN_INLIERS, _MIN_INLIER_SHARE = 25, 0.25
"""Mirrored images of charts reach 29 inliers and a share of 0.17; right ones begin at 0.39."""
_MIN_AGREEMENT = 0.5
_FEW_INLIERS, _MIN_AGREEMENT_OF_FEW = 8, 0.9
"""A bar chart has few features; then the images themselves must agree. Wrong poses reach 0.77."""
_MIN_AGREEMENT_WITHIN, _MIN_SHARE_WITHIN = 0.6, 0.1
"""Corners that a turn filled with black, or a canvas that is too large, outweigh a page of print: where many features
agree, it is enough that the images do so within the convex hull of the features, if it is that share of the image."""
_BLUR = 2.5
_SIFT_SIDE = 900
_N_SIFT_FEATURES = 1500
_MIN_SIFT_INLIERS = 12
_MIN_SIFT_AGREEMENT = 0.8
_MAX_RATIO = 0.75
"""A SIFT match counts when it is nearer than this share of the second nearest (Lowe, 2004)."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Pose of an image in the one that shows it. ``angle``: degrees, counter-clockwise as in PIL, 0 <= angle < 360.
    ``agreement``: correlation of the grey levels where both have pixels. ``matrix``: 2 x 3, pixels of the image to
    pixels of the one that shows it."""

    angle: float
    scale: float
    agreement: float
    matrix: Matrix
    shown_size: tuple[int, int]

    def share_shown(self, box: Box) -> float:
        """Share of a box of the image that lies inside the image that shows it, 0..1."""
        corners = np.array([(box.x1, box.y1), (box.x2, box.y1), (box.x2, box.y2), (box.x1, box.y2)], np.float64)
        placed = (corners @ self.matrix[:, :2].T + self.matrix[:, 2]).astype(np.float32)
        width, height = self.shown_size
        frame = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
        common, _ = cv2.intersectConvexConvex(placed, frame)
        return min(1.0, float(common) / max(1e-6, float(cv2.contourArea(placed))))

    def cut(self, view: Image.Image, box: Box) -> Image.Image:
        """The part of ``view`` that shows a box of the image, at the image's own scale and orientation."""
        moved = cv2.invertAffineTransform(self.matrix) - np.array([[0, 0, box.x1], [0, 0, box.y1]])
        pixels = cv2.warpAffine(np.asarray(view.convert("RGB")), moved, (box.width, box.height), flags=cv2.INTER_CUBIC)
        return Image.fromarray(pixels)


class Overlay(NamedTuple):
    """An image laid over another: its pixels in the other's frame, and 255 where it has any."""

    pixels: Gray
    coverage: Gray


class _Fit(NamedTuple):
    """A similarity, and how well the images must agree when it is laid over them."""

    matrix: Matrix
    min_agreement: float
    blur: float
    """Standard deviation, pixels: forgives a small error of the pose, but dims the edge of a small part."""
    within: Gray | None = None
    """255 in the hull of the features that agree, in the image's frame; None where they are few or close together."""


def pose_of(image: Image.Image, view: Image.Image) -> Pose | None:
    """Pose of ``image`` in ``view``; None when it is not there, or there as its mirror image only."""
    for side, fit in [(side, _fit_orb) for side in _ORB_SIDES] + [(_SIFT_SIDE, _fit_sift)]:
        shrink, shrink_shown = (min(1.0, side / max(each.size)) for each in (image, view))
        small, small_shown = scaled_gray(image, shrink), scaled_gray(view, shrink_shown)
        similarity = fit(small, small_shown)
        if similarity is None or (agreement := _agreement(small, small_shown, similarity)) is None:
            continue
        linear, shift = similarity.matrix[:, :2], similarity.matrix[:, 2]
        matrix = np.column_stack([linear * shrink / shrink_shown, shift / shrink_shown])
        angle = math.degrees(math.atan2(matrix[0, 1], matrix[0, 0])) % 360
        return Pose(angle, math.hypot(matrix[0, 0], matrix[0, 1]), agreement, matrix, view.size)
    return None


def laid_over(view: Gray, matrix: Matrix, size: Sequence[int], *, border: int = cv2.BORDER_CONSTANT) -> Overlay:
    """``view`` in the frame of an image of ``size`` (width, height); ``matrix`` takes its pixels to the view's."""
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    pixels = cv2.warpAffine(view, matrix, size, flags=flags, borderMode=border)
    coverage = cv2.warpAffine(np.full_like(view, 255), matrix, size, flags=flags)
    return Overlay(np.asarray(pixels, np.uint8), np.asarray(coverage, np.uint8))


def scaled_gray(image: Image.Image, factor: float, *, min_side: int = 1) -> Gray:
    """The grey levels of a copy whose sides are ``factor`` times those of ``image``, at least ``min_side`` pixels."""
    size = (max(min_side, round(image.width * factor)), max(min_side, round(image.height * factor)))
    return np.asarray(image.convert("L").resize(size, Image.Resampling.BOX))


def correlation(first: NDArray[np.generic], levels_beside: NDArray[np.generic]) -> float:
    """Pearson's correlation of two equally long arrays of grey levels; 0 when either is plain."""
    if not first.size:
        return 0.0
    first, levels_beside = (levels.astype(np.float64).ravel() - levels.mean() for levels in (first, levels_beside))
    norm = math.sqrt(float(np.dot(first, first)) * float(np.dot(levels_beside, levels_beside)))
    return float(np.dot(first, levels_beside)) / norm if norm > 0 else 0.0


def degrees_between(angle: float, reference: float) -> float:
    """Degrees between two directions: -180 < degrees <= 180."""
    return 180 - (180 - angle + reference) % 360


def _fit_orb(gray: Gray, gray_shown: Gray) -> _Fit | None:
    """The similarity that enough ORB features agree on. A rim lets features near the image's edge be found."""
    rimmed = [cv2.copyMakeBorder(levels, _RIM, _RIM, _RIM, _RIM, cv2.BORDER_REPLICATE) for levels in (gray, gray_shown)]
    (points, words), (points_shown, words_shown) = (_detected(_orb, levels) for levels in rimmed)
    if words is None or words_shown is None:
        return None
    pairs = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(words, words_shown)
    if len(pairs) < _FEW_INLIERS:
        return None
    matrix, places = _similarity(points, points_shown, pairs, rim=_RIM)
    if matrix is None or len(places) < _FEW_INLIERS:
        return None
    if len(places) < max(_MIN_INLIERS, _MIN_INLIER_SHARE * len(pairs)):
        return _Fit(matrix, _MIN_AGREEMENT_OF_FEW, _BLUR)
    return _Fit(matrix, _MIN_AGREEMENT, _BLUR, _hull(places, gray.shape))


def _fit_sift(gray: Gray, gray_shown: Gray) -> _Fit | None:
    """The same by SIFT features of levelled images, which tell small enlarged parts and low contrast."""
    levelled = [cv2.equalizeHist(levels) for levels in (gray, gray_shown)]
    (points, words), (points_shown, words_shown) = (_detected(_sift, levels) for levels in levelled)
    if min(len(points), len(points_shown)) < _MIN_SIFT_INLIERS:
        return None
    nearest = cv2.BFMatcher().knnMatch(words, words_shown, k=2)
    pairs = [pair[0] for pair in nearest if len(pair) == 2 and pair[0].distance < _MAX_RATIO * pair[1].distance]
    if len(pairs) < _MIN_SIFT_INLIERS:
        return None
    matrix, places = _similarity(points, points_shown, pairs)
    if matrix is None or len(places) < _MIN_SIFT_INLIERS:
        return None
    many = len(places) >= max(_MIN_INLIERS, _MIN_INLIER_SHARE * len(pairs))
    return _Fit(matrix, _MIN_SIFT_AGREEMENT, 0.0, _hull(places, gray.shape) if many else None)


_orb = partial(cv2.ORB.create, nfeatures=_N_ORB_FEATURES, fastThreshold=8)
_sift = partial(cv2.SIFT.create, nfeatures=_N_SIFT_FEATURES)


def _detected(detector: Callable[[], cv2.Feature2D], gray: NDArray[Any]) -> tuple[Any, Any]:
    return _detected_in(detector, np.asarray(gray, np.uint8).tobytes(), gray.shape)


@lru_cache(maxsize=8)
def _detected_in(detector: Callable[[], cv2.Feature2D], levels: bytes, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Points and descriptors; kept for a while, as the checks of a row compare the same images."""
    gray = np.frombuffer(levels, np.uint8).reshape(shape)
    return detector().detectAndCompute(gray, np.full_like(gray, 255))


def _similarity(
    points: Any, points_shown: Any, pairs: Sequence[Any], *, rim: int = 0
) -> tuple[Matrix | None, NDArray[np.float32]]:
    """By RANSAC, with the places of its inliers; OpenCV seeds it anew for every estimate."""
    places = np.array([points[pair.queryIdx].pt for pair in pairs], np.float32) - np.float32(rim)
    places_shown = np.array([points_shown[pair.trainIdx].pt for pair in pairs], np.float32) - np.float32(rim)
    matrix, inliers = cv2.estimateAffinePartial2D(
        places, places_shown, method=cv2.RANSAC, ransacReprojThreshold=_REACH, maxIters=3000, confidence=0.999
    )
    return (None, places[:0]) if matrix is None else (np.asarray(matrix, np.float64), places[inliers.ravel() > 0])


def _hull(places: NDArray[np.float32], shape: tuple[int, ...]) -> Gray | None:
    hull = cv2.convexHull(places)
    if cv2.contourArea(hull) < _MIN_SHARE_WITHIN * shape[0] * shape[1]:
        return None
    within = np.zeros(shape, np.uint8)
    cv2.fillConvexPoly(within, np.rint(hull).astype(np.int32), 255)
    return within


def _agreement(gray: Gray, gray_shown: Gray, fit: _Fit) -> float | None:
    """Correlation of both where ``gray_shown`` shows ``gray``, or else where their features agree; None where it is
    less than it must be, as where either is plain."""
    overlay = laid_over(gray_shown, fit.matrix, gray.shape[::-1])
    levels = [cv2.GaussianBlur(grey, (0, 0), fit.blur) if fit.blur else grey for grey in (gray, overlay.pixels)]

    def within(visible: Gray) -> float:
        common = visible[::2, ::2] > 0
        return correlation(*(grey[::2, ::2][common] for grey in levels))

    if (agreement := within(overlay.coverage)) >= fit.min_agreement:
        return agreement
    if fit.within is None or (agreement := within(overlay.coverage & fit.within)) < _MIN_AGREEMENT_WITHIN:
        return None
    return agreement


_MAX_CHANGE = 0.15
"""By which share the pixels may change the scale of a frame: more is another place."""


def refined(
    gray: Gray, beside: Gray, matrix: Matrix, *, n_steps: int, epsilon: float, left_out: NDArray[np.bool_] | None = None
) -> Matrix:
    """``matrix``, which takes places of ``gray`` to those of ``beside``, to a fraction of a pixel, as an affine map, by
    the enhanced correlation coefficient (Evangelidis and Psarakis, 2008), at most ``n_steps`` until it grows by less
    than ``epsilon``. Places ``left_out`` of ``gray`` do not count; where the pixels lead nowhere it is as it was."""
    counted = None
    if left_out is not None:
        size = (beside.shape[1], beside.shape[0])
        counted = cv2.warpAffine((~left_out).astype(np.uint8), matrix, size, flags=cv2.INTER_NEAREST, borderValue=1)
    steps = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, n_steps, epsilon)
    try:
        warp = cv2.findTransformECC(gray, beside, matrix.astype(np.float32), cv2.MOTION_AFFINE, steps, counted)[1]
    except cv2.error:  # it says so when it does not converge
        return matrix
    better = np.asarray(warp, np.float64)
    moved = np.abs(np.linalg.svd(better[:, :2])[1] / np.linalg.svd(matrix[:, :2])[1] - 1).max()
    return matrix if moved > _MAX_CHANGE else better


def details(gray: Gray, finest: float = 1.0, coarsest: float = 4.0) -> NDArray[np.float32]:
    """Details without noise and shading: between two blurs, standard deviations in pixels."""
    exact = gray.astype(np.float32)
    fine, coarse = (np.asarray(cv2.GaussianBlur(exact, (0, 0), sigma), np.float32) for sigma in (finest, coarsest))
    return fine - coarse
