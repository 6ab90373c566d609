"""Corrupted boxes: moved, grown, shrunk, turned inside out, the whole image, two of them, no numbers."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.geometry import overlap
from pipelines.grading.boxes import LEAST_OVERLAP, Corners, read_box
from pipelines.grading.corrupted.base import Corruption
from pipelines.records import Grader, Sample

_BELOW = 0.98
"""How far below the bound a box is put, as a share of it."""


def boxes(sample: Sample, grader: Grader) -> Iterator[Corruption]:
    """Other boxes and no boxes. Nothing where the expected answer is none."""
    own = read_box(sample.answer)
    if own is None:
        return
    least = grader.tolerance or LEAST_OVERLAP
    for kind, box in _others(own, least * _BELOW):
        if overlap(box, own) < least:
            yield Corruption(kind, spelled(box))
    # a box that is most of its image is not told from the image: that is for the grader to show
    for image in sample.images[:1]:
        yield Corruption("whole image", spelled((0, 0, image.width, image.height)))
    x1, y1, x2, y2 = own
    yield Corruption("turned inside out", spelled((x2, y2, x1, y1)))
    yield Corruption("sides swapped", spelled((x1, x2, y1, y2)) if y1 >= y2 or x1 >= x2 else spelled((x2, y1, x1, y2)))
    yield Corruption("two boxes", f"{spelled(own)} {spelled(own)}")
    yield Corruption("two boxes", f"[{spelled(own)}, {spelled((0, 0, 1, 1))}]")
    yield Corruption("three corners", f"[{x1:g}, {y1:g}, {x2:g}]")
    yield from (
        Corruption("not finite", f"[{x1:g}, {y1:g}, {x2:g}, {value}]") for value in ("NaN", "Infinity", "1e999")
    )
    if max(own) > 1:
        yield Corruption("in fractions", "[0.1, 0.1, 0.9, 0.9]")


def spelled(box: Corners) -> str:
    """``[x1, y1, x2, y2]``."""
    return f"[{', '.join(f'{side:.10g}' for side in box)}]"


def rival_box(answer: str) -> str:
    """A box beside the one that ``answer`` is."""
    own = read_box(answer)
    return "[0, 0, 1, 1]" if own is None else spelled(_moved(own, 3.0, 3.0))


def _others(own: Corners, below: float) -> Iterator[tuple[str, Corners]]:
    x1, y1, x2, y2 = own
    # two equal boxes, one moved by a share m of its width: IoU = (1 - m) / (1 + m)
    share = (1 - below) / (1 + below)
    yield "moved just too far", _moved(own, share, 0)
    yield "moved just too far", _moved(own, 0, -share)
    yield "moved away", _moved(own, 2, 2)
    yield "grown", (x1, y1, x1 + (x2 - x1) / below, y2)
    yield "shrunk", (x1, y1, x2, y1 + (y2 - y1) * below)


def _moved(box: Corners, across: float, down: float) -> Corners:
    x1, y1, x2, y2 = box
    dx, dy = across * (x2 - x1), down * (y2 - y1)
    return (x1 + dx, y1 + dy, x2 + dx, y2 + dy)
