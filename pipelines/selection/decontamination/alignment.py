"""Verify that one image shows a part of another: the shared places give the frame, the pixels decide. Every pair of
matching features proposes a similarity (scale, angle, shift). The few proposals that most other pairs agree with are
refined on the pixels, and the two images are correlated where they overlap. A matrix takes a place of the query to its
place in the image."""

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.local_features import Gray, Places, scaled
from darkroom.pipelines.selection.duplicates.same_image import after, fitted, similarities, whole
from darkroom.pipelines.vision.registration import Matrix, correlation, details, laid_over, refined

ALIKE = 0.9
"""Correlation of grey levels from which two regions show the same (docs/decontamination.md)."""

COVERED = 0.6
"""The share of one of the two images that the overlap covers at least."""

AGREEING = 3
"""So many pairs of features agree at least: from one or two, smooth regions can be bent to look alike."""

_PROPOSALS = 3
_NEAR = 0.02
"""A pair agrees with a proposal that misses it by this share of the image's longer side."""
_NEAR_ZOOM = 0.5
_LARGEST_ZOOM = 16.0
_SMALLEST_SIDE = 24
_LARGEST_AREA = 256 * 256
_PROMISING = 0.4
"""Pixels of a frame that correlate less are not worth refining it."""
_PLAIN = 1.5
"""Details that deviate less than this many grey levels would agree with anything."""
_N_STEPS, _EPSILON = 30, 1e-4


@dataclass(frozen=True, slots=True)
class Alignment:
    """The overlap of a query with an image. ``correlation`` -1..1; ``of_query`` and ``of_image``: their shares 0..1 in
    it; ``scale``: pixels of the image per pixel of the query; ``n_agreeing``: pairs of features that agree."""

    correlation: float
    of_query: float
    of_image: float
    scale: float
    n_agreeing: int

    @property
    def same(self) -> bool:
        """Tell whether one of the two is a part of the other."""
        covered = max(self.of_query, self.of_image)
        return self.correlation >= ALIKE and covered >= COVERED and self.n_agreeing >= AGREEING


def align(query: Gray, image: Gray, query_places: Places, image_places: Places) -> Alignment | None:
    """The best overlap. The places correspond row by row and are in pixels of ``query`` and of ``image``."""
    proposals = _proposals(query_places, image_places, max(image.shape))
    overlaps = (_compared(query, image, matrix, n_agreeing) for matrix, n_agreeing in proposals)
    return max(filter(None, overlaps), key=lambda aligned: (aligned.same, aligned.correlation), default=None)


def _proposals(query: Places, image: Places, side: int) -> Iterator[tuple[Matrix, int]]:
    """The similarities that most pairs agree with, each made of all that agree."""
    matrices, agreeing = similarities(query, image, near=_NEAR * side, zoom=_NEAR_ZOOM, largest_zoom=_LARGEST_ZOOM)
    for _ in range(_PROPOSALS):
        best = int(agreeing.sum(axis=1).argmax())
        pairs = agreeing[best].copy()
        if not pairs.any():
            return
        yield fitted(matrices[best], query[pairs], image[pairs]), int(pairs.sum())
        agreeing &= ~pairs


def _compared(query: Gray, image: Gray, matrix: Matrix, n_agreeing: int) -> Alignment | None:
    """Both at the coarser one's resolution, in the query's frame; what the finer one has more is no difference."""
    scale = float(np.sqrt(abs(np.linalg.det(matrix[:, :2]))))
    if not 1 / _LARGEST_ZOOM <= scale <= _LARGEST_ZOOM:
        return None
    factor = min(1.0, scale, float(np.sqrt(_LARGEST_AREA / query.size)))
    small_query, small_image = scaled(query, factor), scaled(image, factor / scale)
    if min(*small_query.shape, *small_image.shape) < _SMALLEST_SIDE:
        return None
    to_image = after(whole(image, small_image), after(matrix, whole(small_query, query)))
    correlation, inside = _correlated(small_query, small_image, to_image)
    if correlation < _PROMISING:
        return None
    better_frame = refined(small_query, small_image, to_image, n_steps=_N_STEPS, epsilon=_EPSILON)
    better, refined_inside = _correlated(small_query, small_image, better_frame)
    if better > correlation:
        correlation, inside, to_image = better, refined_inside, better_frame
    of_image = inside.sum() * abs(np.linalg.det(to_image[:, :2])) / small_image.size
    return Alignment(correlation, float(inside.mean()), float(min(1.0, of_image)), scale, n_agreeing)


def _correlated(query: Gray, image: Gray, matrix: Matrix) -> tuple[float, NDArray[np.bool_]]:
    """Correlate the details where the two overlap: the share, and the region; 0 where one shows hardly any."""
    overlay = laid_over(image, matrix, query.shape[::-1], border=cv2.BORDER_REPLICATE)
    inside = overlay.coverage == 255
    if inside.sum() < _SMALLEST_SIDE**2:
        return 0.0, inside
    levels, image_levels = details(query)[inside], details(overlay.pixels)[inside]
    if min(levels.std(), image_levels.std()) < _PLAIN:
        return 0.0, inside
    return correlation(levels, image_levels), inside
