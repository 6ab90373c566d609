"""How one picture lies in another, measured on pixels: the turn, the scale and the shift that lay it over the other.

Oriented features (ORB) of both are matched, a similarity is fitted to the matches, and what it says is verified by
laying the pictures over each other. A mirrored picture is no similarity, so it is not found; nor is another picture,
one that shows nothing, and one whose parts all look alike. Angles are exact to about half a degree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.geometry import Box

Gray = NDArray[np.uint8]
Matrix = NDArray[np.float64]

_SIDES = (448, 800)
"""The longer side, pixels, at which pictures are compared: the second where the first is too small for print."""
_N_FEATURES = 600
_RIM = 24
"""Pixels. ORB sees nothing in the outermost 31, where a trimmed chart has its print."""
_REACH = 3.0
"""Pixels (of the small copies) by which a matched feature may miss its place."""
_MIN_INLIERS, _MIN_INLIER_SHARE = 25, 0.25
"""Mirrored pictures of charts reach 29 inliers and a share of 0.17; right ones begin at 0.39."""
_MIN_AGREEMENT = 0.5
_FEW_INLIERS, _MIN_AGREEMENT_OF_FEW = 8, 0.9
"""A bar chart has few features; then the pictures themselves must agree. Wrong poses reach 0.77."""
_BLUR = 2.5


@dataclass(frozen=True, slots=True)
class Pose:
    """Where a picture lies in the one that shows it.

    ``angle``: degrees, counter-clockwise as in PIL, 0 <= angle < 360. ``agreement``: correlation of the grey levels
    where both have pixels. ``matrix``: 2 x 3, pixels of the picture to pixels of the one that shows it.
    """

    angle: float
    scale: float
    agreement: float
    matrix: Matrix
    shown_size: tuple[int, int]

    def share_shown(self, box: Box) -> float:
        """How much of a box of the picture lies inside the image that shows it, 0..1."""
        corners = np.array([(box.x1, box.y1), (box.x2, box.y1), (box.x2, box.y2), (box.x1, box.y2)], np.float64)
        placed = (corners @ self.matrix[:, :2].T + self.matrix[:, 2]).astype(np.float32)
        width, height = self.shown_size
        frame = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
        common, _ = cv2.intersectConvexConvex(placed, frame)
        return min(1.0, float(common) / max(1e-6, float(cv2.contourArea(placed))))

    def cut(self, shown: Image.Image, box: Box) -> Image.Image:
        """The part of ``shown`` that shows a box of the picture, at the picture's own scale and orientation."""
        inverse = cv2.invertAffineTransform(self.matrix)
        moved = inverse - np.array([[0, 0, box.x1], [0, 0, box.y1]])
        pixels = cv2.warpAffine(np.asarray(shown.convert("RGB")), moved, (box.width, box.height), flags=cv2.INTER_CUBIC)
        return Image.fromarray(pixels)


class _Fit(NamedTuple):
    """A similarity, and how well the pictures must agree when it is laid over them."""

    matrix: Matrix
    least_agreement: float


def pose_of(picture: Image.Image, shown: Image.Image) -> Pose | None:
    """Where ``picture`` lies in ``shown``; None when it is not there, or there as its mirror image only."""
    return next((found for side in _SIDES if (found := _pose_at(side, picture, shown))), None)


def _pose_at(side: int, picture: Image.Image, shown: Image.Image) -> Pose | None:
    one, shrunk_one = _small(picture, side)
    other, shrunk_other = _small(shown, side)
    fitted = _fitted(one, other)
    if fitted is None:
        return None
    agreement = _agreement(one, other, fitted.matrix)
    if agreement < fitted.least_agreement:
        return None
    linear, shift = fitted.matrix[:, :2], fitted.matrix[:, 2]
    matrix = np.column_stack([linear * shrunk_one / shrunk_other, shift / shrunk_other])
    return Pose(
        angle=math.degrees(math.atan2(matrix[0, 1], matrix[0, 0])) % 360,
        scale=math.hypot(matrix[0, 0], matrix[0, 1]),
        agreement=agreement,
        matrix=matrix,
        shown_size=shown.size,
    )


def apart(one: float, other: float) -> float:
    """How many degrees lie between two directions: -180 < degrees <= 180."""
    return 180 - (180 - one + other) % 360


def _small(image: Image.Image, side: int) -> tuple[Gray, float]:
    shrink = min(1.0, side / max(image.size))
    size = (max(1, round(image.width * shrink)), max(1, round(image.height * shrink)))
    return np.asarray(image.convert("L").resize(size, Image.Resampling.BOX)), shrink


def _fitted(one: Gray, other: Gray) -> _Fit | None:
    """The similarity that takes ``one`` to ``other``, if enough features agree on one."""
    points, descriptors = _features(one)
    other_points, other_descriptors = _features(other)
    if descriptors is None or other_descriptors is None:
        return None
    matches = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(descriptors, other_descriptors)
    if len(matches) < _FEW_INLIERS:
        return None
    here = np.array([points[match.queryIdx].pt for match in matches], np.float32) - _RIM
    there = np.array([other_points[match.trainIdx].pt for match in matches], np.float32) - _RIM
    matrix, inliers = cv2.estimateAffinePartial2D(
        here, there, method=cv2.RANSAC, ransacReprojThreshold=_REACH, maxIters=3000, confidence=0.999
    )
    n_inliers = 0 if matrix is None else int(inliers.sum())
    if n_inliers < _FEW_INLIERS:
        return None
    many = n_inliers >= max(_MIN_INLIERS, _MIN_INLIER_SHARE * len(matches))
    return _Fit(np.asarray(matrix, np.float64), _MIN_AGREEMENT if many else _MIN_AGREEMENT_OF_FEW)


def _features(gray: Gray) -> tuple[Any, Any]:
    """Points and descriptors. A rim around the picture lets features near its edge be found."""
    rimmed = cv2.copyMakeBorder(gray, _RIM, _RIM, _RIM, _RIM, cv2.BORDER_REPLICATE)
    everywhere = np.full_like(rimmed, 255)
    return cv2.ORB.create(nfeatures=_N_FEATURES, fastThreshold=8).detectAndCompute(rimmed, everywhere)


def _agreement(one: Gray, other: Gray, matrix: Matrix) -> float:
    """Correlation of both, slightly blurred, where ``other`` shows ``one``; 0 where either is plain."""
    size, flags = (one.shape[1], one.shape[0]), cv2.WARP_INVERSE_MAP | cv2.INTER_LINEAR
    laid = cv2.GaussianBlur(cv2.warpAffine(other, matrix, size, flags=flags), (0, 0), _BLUR)
    both = cv2.warpAffine(np.full_like(other, 255), matrix, size, flags=flags)[::2, ::2] > 0
    return correlation(cv2.GaussianBlur(one, (0, 0), _BLUR)[::2, ::2][both], laid[::2, ::2][both])


def correlation(one: NDArray[np.generic], other: NDArray[np.generic]) -> float:
    """Pearson's correlation of two equally long arrays of grey levels; 0 when either is plain."""
    left, right = (
        (values.astype(np.float64).ravel() - values.mean() for values in (one, other)) if one.size else ((), ())
    )
    norm = math.sqrt(float(np.dot(left, left)) * float(np.dot(right, right)))
    return float(np.dot(left, right)) / norm if norm > 0 else 0.0
