"""Verify that one image shows a part of another: the shared places give the frame, the pixels decide. Every pair of
matching features proposes a similarity (scale, angle, shift). The few proposals that most other pairs agree with are
refined on the pixels, and the two images are correlated where they overlap. A matrix takes a place of the query to its
place in the image."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.selection.duplicates.local_features import Gray, Places, scaled
from darkroom.pipelines.selection.duplicates.same_image import fitted, rescaled, similarities
from darkroom.pipelines.vision.registration import Matrix, correlation, details, laid_over, refined

ALIKE = 0.9
"""Correlation of grey levels from which two regions show the same (docs/decontamination.md)."""

COVERED = 0.6
"""The share of one of the two images that the overlap covers at least."""

AGREEING = 3
"""So many pairs of features agree at least: from one or two, smooth regions can be bent to look alike."""

_PROPOSALS = 3
_LIKELY, _LIKELY_BESIDE = 0.06, 0.25
"""Share of the pairs, and of those that agree with the best proposal: fewer agree by chance."""
_NEAR = 0.02
"""A pair agrees with a proposal that misses it by this share of the image's longer side."""
_NEAR_ZOOM = 0.5
_LARGEST_ZOOM = 16.0
_SMALLEST_SIDE = 24
_LARGEST_AREA = 256 * 256
_PROMISING = 0.4
"""Pixels of a frame that correlate less are not worth refining it."""
_PROMISING_HALF = 0.75
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


Proposal = tuple[Matrix, int]
"""A similarity, and how many pairs of features agree with it."""


def align(query: Gray, image: Gray, proposals: Sequence[Proposal]) -> Alignment | None:
    """The best overlap of those that are proposed."""
    overlaps = (_compared(query, image, *proposal) for proposal in proposals)
    return max(filter(None, overlaps), key=lambda aligned: (aligned.same, aligned.correlation), default=None)


def propose(query: Places, image: Places, side: int) -> Iterator[Proposal]:
    """The similarities that most pairs agree with, each made of all that agree. The places correspond row by row and
    are in pixels of the query and of an image whose longer side is ``side``."""
    if len(query) < AGREEING:
        return
    matrices, agreeing = similarities(query, image, near=_NEAR * side, zoom=_NEAR_ZOOM, largest_zoom=_LARGEST_ZOOM)
    fewest = max(AGREEING, _LIKELY * len(query), _LIKELY_BESIDE * agreeing.sum(axis=1).max())
    for _ in range(_PROPOSALS):
        best = int(agreeing.sum(axis=1).argmax())
        pairs = agreeing[best].copy()
        if pairs.sum() < fewest:
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
    to_image = rescaled(matrix, query, small_query, image, small_image)
    correlation, inside = _correlated(small_query, small_image, to_image)
    if correlation < _PROMISING:
        return None
    better_frame = _refined(small_query, small_image, to_image)
    better, refined_inside = _correlated(small_query, small_image, better_frame)
    if better > correlation:
        correlation, inside, to_image = better, refined_inside, better_frame
    of_image = inside.sum() * abs(np.linalg.det(to_image[:, :2])) / small_image.size
    return Alignment(correlation, float(inside.mean()), float(min(1.0, of_image)), scale, n_agreeing)


def _refined(query: Gray, image: Gray, frame: Matrix) -> Matrix:
    """The frame to a fraction of a pixel; as it was where copies of half the size stay unlike."""
    if min(*query.shape, *image.shape) >= 2 * _SMALLEST_SIDE:
        half_query, half_image = scaled(query, 0.5), scaled(image, 0.5)
        half = rescaled(frame, query, half_query, image, half_image)
        half = refined(half_query, half_image, half, n_steps=_N_STEPS, epsilon=_EPSILON)
        if _correlated(half_query, half_image, half)[0] < _PROMISING_HALF:
            return frame
        frame = rescaled(half, half_query, query, half_image, image)
    return refined(query, image, frame, n_steps=_N_STEPS, epsilon=_EPSILON)


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
