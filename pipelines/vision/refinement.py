"""What both comparisons of overlaid images need: a frame to a fraction of a pixel, and details without shading.

Used where the same image is sought (``selection/duplicates/same_image.py``) and where one is a part of another
(``selection/decontamination/alignment.py``).
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.vision.registration import Gray, Matrix

_MAX_CHANGE = 0.15
"""By which share the pixels may change the scale of a frame: more is another place."""


def refined(
    gray: Gray, beside: Gray, matrix: Matrix, *, n_steps: int, epsilon: float, left_out: NDArray[np.bool_] | None = None
) -> Matrix:
    """``matrix``, which takes places of ``gray`` to those of ``beside``, to a fraction of a pixel, as an affine map.

    By the enhanced correlation coefficient (Evangelidis and Psarakis, 2008), at most ``n_steps`` until it grows by less
    than ``epsilon``; places ``left_out`` of ``gray`` do not count. As it was where the pixels lead nowhere.
    """
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
    """What is neither noise nor shading: between two blurs, standard deviations in pixels."""
    exact = gray.astype(np.float32)
    fine, coarse = (np.asarray(cv2.GaussianBlur(exact, (0, 0), sigma), np.float32) for sigma in (finest, coarsest))
    return fine - coarse
