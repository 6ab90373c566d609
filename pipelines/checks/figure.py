"""Checks on figures, measured on the pixels that came back: that something was drawn, and by the program."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipelines.cases import Case
from pipelines.checks.base import Flaw, Verdict, check, failed, passed
from pipelines.records import ImageRef

MIN_SIDE = 64
"""Pixels; a smaller picture shows nothing to a reader."""
MIN_EDGE_SHARE = 0.0005
"""Of the inner part's pixels: three points of a scatter plot have twice as many, an empty pair of axes has none."""
MIN_SPREAD = 0.25
"""What a drawing reaches across, as a share of the inner part's side; a number written in the middle does not."""
_EDGE = 32.0
"""A step between neighbours, of 255 levels of grey, that the eye takes for a line."""
_INNER = (0.14, 0.88)
"""Where matplotlib's frame and tick labels are not."""
_SAME = 3.0
"""Mean difference in levels of grey below which two small copies are one picture."""

Grey = npt.NDArray[np.float32]


@check()
def figure_rendered(case: Case) -> Verdict:
    """Every image that came back is a drawing of the program's own; ``score`` is the least share of edges."""
    shown = [image for turn in case.trajectory.rounds for image in turn.observation.images]
    if not shown:
        return failed(Flaw.NO_IMAGE, "no program showed an image", score=0.0)
    given = [_small(case, image) for image in case.trajectory.images]
    shares = []
    for n, image in enumerate(shown, 1):
        if any(np.abs(_small(case, image) - one).mean() < _SAME for one in given):
            return failed(Flaw.NOT_DRAWN, f"image {n} is an image of the question")
        share, spread = _ink(_grey(case, image))
        if min(image.width, image.height) < MIN_SIDE or share < MIN_EDGE_SHARE or spread < MIN_SPREAD:
            what = f"{image.width}x{image.height} pixels, edges {share:.2%}, reaching across {spread:.0%}"
            return failed(Flaw.FIGURE_BLANK, f"image {n} shows no drawing: {what}", score=round(share, 4))
        shares.append(share)
    return passed(f"images: {len(shown)}", score=round(min(shares), 4))


def _grey(case: Case, image: ImageRef) -> Grey:
    return np.asarray(case.store.open(image).convert("L"), dtype=np.float32)


def _small(case: Case, image: ImageRef) -> Grey:
    return np.asarray(case.store.open(image).convert("L").resize((32, 32)), dtype=np.float32)


def _ink(grey: Grey) -> tuple[float, float]:
    """The share of edges in the inner part, and how far across they reach."""
    height, width = grey.shape
    low, high = _INNER
    inner = grey[int(low * height) : int(high * height), int(low * width) : int(high * width)]
    if min(inner.shape) < 2:
        return 0.0, 0.0
    steps = np.hypot(np.diff(inner, axis=0)[:, :-1], np.diff(inner, axis=1)[:-1])
    edges = steps > _EDGE
    rows, columns = np.flatnonzero(edges.any(axis=1)), np.flatnonzero(edges.any(axis=0))
    if not rows.size:
        return 0.0, 0.0
    spread = max(np.ptp(rows) / edges.shape[0], np.ptp(columns) / edges.shape[1])
    return float(edges.mean()), float(spread)
