"""Boxes in users' rows: their spellings, their frames, and the check whether a frame fits a whole column.

A frame is an order of four numbers and a unit. Orders: ``corners`` (x1, y1, x2, y2), ``xywh`` (COCO), ``cxcywh``
(centre and size, YOLO), ``yxyx`` (y1, x1, y2, x2, Gemini). Units: pixels of the upright image, or ``fractions``
(0..1), ``percent`` or ``thousandths`` (0..1000) of its width and height.

    box_in_pixels((750, 750, 781, 783), "thousandths", (1600, 1200))     # Box(1200, 900, 1250, 940)
    BoxColumn([BoxRow((UserBox("", (0.75, 0.75, 0.781, 0.783)),), ((1600, 1200),))]).fitting

Numbers alone do not tell ``corners`` from ``yxyx`` in a relative unit (or in pixels of square images), nor ``xywh``
from ``cxcywh`` where boxes are small and away from the edges, nor ``corners`` from ``xywh`` where all boxes are in the
upper left: then the frame must be stated. So it must where they fill an upper left part, as those of a smaller copy do.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources import SourceError, UserBox
from darkroom.pipelines.sources.columns import BoxFrame, list_in, object_in
from darkroom.pipelines.sources.media import describe

Order = Literal["corners", "xywh", "cxcywh", "yxyx"]
Sides = tuple[float, float, float, float]

_FULL = {"fractions": 1.0, "percent": 100.0, "thousandths": 1000.0}
"""The number of the whole width or height."""
_AS_CORNERS: tuple[BoxFrame, ...] = ("corners", "fractions", "percent", "thousandths")
_FARTHEST = 2.0**53
_TOLERATED = 0.02
"""Proportion of rows whose boxes a frame may get wrong and still fit."""
_MOST_DOUBTFUL = 0.1
"""Proportion of misfits from which another frame that fits is right, whatever was stated."""
_ROUNDED = 0.01
"""Pixels: coordinates relative to an image are written with few digits, and must not grow a box by a pixel."""
_EXACT = 1e-6
_SMALL_PIXELS = {"percent": math.log(20)}
"""Logarithms of how much likelier a smaller unit must be: percent are rare, small boxes in pixels are not."""
_MISFIT = math.log(50)
"""Logarithm of how much likelier a frame is made by a row whose boxes it fits than by one whose boxes it doesn't."""

_FEWEST = 3
"""Boxes from which on their spread tells ``corners`` from ``xywh``."""
_SPREAD = 5
"""Factor by which corners spread farther than sizes where boxes are of about one size."""

_MANY, _UNLIKELY = 20, math.log(1e-6)
"""Positions from which on a part that holds them all is no chance, and the logarithm of that chance."""
_PART, _EVEN, _OVER = 0.75, 1.35, 0.18
"""Of an upper left part that is a copy or another range: its longest side in images, the factor by which its sides
differ (in pixels, or as shares; a toolbar's differ more), the deviation of positions in it (a subject's is less)."""

_KEYS = ("bbox", "bbox_2d", "box", "bndbox", "points")
_LABELS = ("label", "name", "category", "ref")
_IMAGES = ("image_id", "image_index", "image")
NAMED: Mapping[str, Order] = {
    **dict.fromkeys(("xmin ymin xmax ymax", "x1 y1 x2 y2", "left top right bottom"), "corners"),
    **dict.fromkeys(("x y width height", "x y w h", "left top width height"), "xywh"),
    "cx cy w h": "cxcywh",
}


def order_and_unit(frame: BoxFrame) -> tuple[Order, str]:
    """``("yxyx", "thousandths")`` for ``yxyx_thousandths``; ``("corners", "percent")`` for ``percent``."""
    order, _, last = frame.rpartition("_")
    return (cast(Order, order or "corners"), last) if last in _FULL else (cast(Order, last), "pixels")


def box_in_pixels(sides: Sequence[float], frame: BoxFrame, size: tuple[int, int], *, are_corners: bool = False) -> Box:
    """The smallest box of whole pixels that covers ``sides``, in an image of ``size`` (width, height), upright; with
    ``are_corners`` whatever the order of ``frame``. One pixel beyond the image is clipped. Raises ``ValueError`` for an
    inverted or empty box, and where there are not four finite numbers."""
    if len(sides) != 4 or not all(-_FARTHEST < value < _FARTHEST for value in sides):
        raise ValueError(f"a box needs four finite numbers; found {list(sides)!r}")
    x1, y1, x2, y2 = _corners(np.array([sides], float), np.array([size]), frame, np.array([are_corners]))[0].tolist()
    if x2 <= x1 or y2 <= y1:
        raise ValueError(f"a box needs x1 < x2 and y1 < y2; found {list(sides)!r} as {frame}")
    slack = _EXACT if order_and_unit(frame)[1] == "pixels" else _ROUNDED
    x, y = math.floor(x1 + slack), math.floor(y1 + slack)
    box = Box(x, y, max(math.ceil(x2 - slack), x + 1), max(math.ceil(y2 - slack), y + 1))
    return box.clipped(*size) if Box(0, 0, *size).contains(box, slack=1) else box


def _corners(sides: NDArray[Any], sizes: NDArray[Any], frame: BoxFrame, are_corners: NDArray[np.bool_]) -> NDArray[Any]:
    """Corners in pixels (N, 4) of ``sides`` (N, 4) in images of ``sizes`` (N, 2); ``are_corners`` (N)."""
    order, unit = order_and_unit(frame)
    corners = np.where(are_corners[:, None], sides, np.stack(_TO_CORNERS[order](*sides.T), axis=1))
    return corners * np.tile(sizes, 2) / _FULL[unit] if unit in _FULL else corners


_TO_CORNERS: Mapping[Order, Callable[..., Any]] = {
    "corners": lambda x1, y1, x2, y2: (x1, y1, x2, y2),
    "xywh": lambda x, y, width, height: (x, y, x + width, y + height),
    "cxcywh": lambda x, y, width, height: (x - width / 2, y - height / 2, x + width / 2, y + height / 2),
    "yxyx": lambda y1, x1, y2, x2: (x1, y1, x2, y2),
}


def read_boxes(content: Any, column: str, *, n_images: int) -> tuple[UserBox, ...]:
    """The boxes in a row's column: one box, a list, objects, or objects of lists. An object has ``bbox``, ``bbox_2d``,
    ``box``, ``bndbox`` or ``points`` (a polygon's), or fields like ``xmin``; its ``image_id``, ``image_index`` or
    ``image`` is the index of its image. Fields that name an order become corners. Raises ``RowError`` (wrong_type)."""
    if not content:
        return ()
    value = object_in(content) or list_in(content)
    if value is None:
        raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected boxes, found {describe(content)}")
    entries = [value] if isinstance(value, Mapping) or _numbers(value) else value
    boxes = tuple(box for entry in entries for box in _boxes_in(entry, column))
    # the only image is meant by whatever number it has in an index of the whole dataset
    is_of_only = n_images == 1 and len({box.image for box in boxes}) == 1
    return tuple(box._replace(image=0) for box in boxes) if is_of_only else boxes


def _boxes_in(entry: Any, column: str) -> Iterator[UserBox]:
    fields = entry if isinstance(entry, Mapping) else {}
    key = next((key for key in _KEYS if fields.get(key)), "")
    value = fields[key] if key else entry
    has_lists = key not in ("", "points") and _has(value, 1) and _has(value[0], 0)
    for n, sides in enumerate(value if has_lists else [value]):
        each = {name: of[n] if has_lists and _has(of, n + 1) else of for name, of in fields.items()}
        label = next((each[name] for name in _LABELS if each.get(name)), "")
        image = next((each[name] for name in _IMAGES if type(each.get(name)) is int), 0)
        numbers = _numbers(sides)
        yield UserBox(str(label), numbers or _named_corners(sides, column), image, are_corners=numbers is None)


def _has(value: Any, n: int) -> bool:
    return isinstance(value, list | tuple) and len(value) >= n


def _named_corners(value: Any, column: str) -> Sides:
    for names, order in NAMED.items() if isinstance(value, Mapping) else ():
        if (numbers := _numbers([_number(value.get(name)) for name in names.split()])) is not None:
            return cast(Sides, _TO_CORNERS[order](*numbers))
    if _has(value, 2) and all(_numbers(point, 2) for point in value):
        xs, ys = zip(*value, strict=True)
        return min(xs), min(ys), max(xs), max(ys)
    raise RowError(Reason.WRONG_TYPE, f"column {column!r}: expected four numbers, found {describe(value)}")


def _numbers(value: Any, n: int = 4) -> Sides | None:
    is_tuple = _has(value, n) and len(value) == n and all(type(side) in (int, float) for side in value)
    return cast(Sides, tuple(value)) if is_tuple else None


def _number(value: Any) -> Any:
    """A field's number; XML has it as text."""
    with suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return None


class BoxRow(NamedTuple):
    """The boxes of one row, (width, height) of each of its images, upright, and which of them EXIF turns."""

    boxes: Sequence[UserBox]
    sizes: Sequence[tuple[int, int]]
    turned: Sequence[bool] = ()


class ColumnFinding(NamedTuple):
    """A doubt about the frame of a column. ``is_certain``: the values are in another frame, whatever was stated."""

    what: str
    is_certain: bool


def check_column(rows: Sequence[BoxRow], frame: BoxFrame | None, *, source: str, column: str) -> list[str]:
    """The doubts that a stated frame overrules, for cards. Raises ``SourceError`` that names the frame that fits."""
    boxes, used = BoxColumn(rows), frame or "corners"
    findings = list(boxes.doubts(used))
    is_certain = any(finding.is_certain for finding in findings)
    if not findings or (frame is not None and not is_certain):
        return [finding.what for finding in findings]
    likelier = " or ".join(boxes.likelier(used))
    remedies = [f"use what fits: {likelier}"] if likelier else []
    if not is_certain:
        fitting = " or ".join([used, *boxes.rivals(used)])
        remedies.append(f"state {fitting} (pixels of the upright image) if it is right")
    read_as = used if frame else f"{used} in pixels, as no frame is stated"
    what = f"the boxes in column {column!r} are read as {read_as}, but {'; '.join(doubt.what for doubt in findings)}"
    remedy = f". Set `box_frame` (--box-frame): {', or '.join(remedies)}" if remedies else ""
    raise SourceError(f"source {source!r}: {what}{remedy}")


class BoxColumn:
    """All boxes of a column as arrays; ``of_row`` is the number of each one's row."""

    def __init__(self, rows: Sequence[BoxRow]) -> None:
        self._rows = [row for row in rows if row.boxes]
        boxes = [
            (number, box.sides, box.are_corners, row.sizes[box.image], any(row.turned[box.image : box.image + 1]))
            for number, row in enumerate(self._rows)
            for box in row.boxes
            if 0 <= box.image < len(row.sizes) and all(-_FARTHEST < side < _FARTHEST for side in box.sides)
        ]
        self._of_row = np.array([number for number, *_ in boxes], int)
        self._sides = np.array([sides for _, sides, *_ in boxes], float).reshape(-1, 4)
        self._are_corners = np.array([are_corners for _, _, are_corners, *_ in boxes], bool)
        self._sizes = np.array([size for *_, size, _ in boxes], float).reshape(-1, 2)
        self._turned = np.array([is_turned for *_, is_turned in boxes], bool)
        self.n_rows = self._count(np.ones(len(boxes), bool))

    @cached_property
    def fitting(self) -> list[BoxFrame]:
        """The frames in which the boxes lie in their images, in the smallest unit that holds them, likeliest first."""
        frames: tuple[BoxFrame, ...] = _AS_CORNERS if self._are_corners.all() else get_args(BoxFrame)
        misfits: dict[BoxFrame, int] = {frame: self._count(self._is_misfit(frame)) for frame in frames}
        fits = [frame for frame, n in misfits.items() if n <= _TOLERATED * self.n_rows] if self.n_rows else []
        smallest = min(map(self._area, fits), default=0.0)
        return sorted((frame for frame in fits if self._area(frame) == smallest), key=misfits.__getitem__)

    def likelier(self, frame: BoxFrame) -> list[BoxFrame]:
        """The fitting frames, if they are likelier than ``frame``: boxes anywhere in the range of either one's unit."""
        if not self.fitting or frame in self.fitting:
            return []
        evidence = self._smaller_by(frame) + _MISFIT * self._count(self._is_misfit(frame))
        return self.fitting if evidence > _SMALL_PIXELS.get(order_and_unit(self.fitting[0])[1], 0) else []

    def rivals(self, frame: BoxFrame) -> list[BoxFrame]:
        """``xywh`` for ``corners`` and the reverse, where boxes fit both as well and would be in two places."""
        order, unit = order_and_unit(frame)
        other = {"corners": "xywh", "xywh": "corners"}.get(order)
        rivals = [rival for rival in get_args(BoxFrame) if order_and_unit(rival) == (other, unit)]
        misfits = [self._count(self._is_misfit(each)) for each in (frame, *rivals)]
        if not rivals or misfits[1] > misfits[0] or (order == "corners" and self._are_of_one_size):
            return []
        here, there = (_corners(self._sides, self._sizes, each, self._are_corners) for each in (frame, *rivals))
        return rivals if self._count(np.abs(here - there).max(axis=1) > 1) > _TOLERATED * self.n_rows else []

    @property
    def _are_of_one_size(self) -> bool:
        """True if the last two numbers follow the first two, as corners of boxes of about one size do."""
        ends, sizes = self._sides[:, 2:], self._sides[:, 2:] - self._sides[:, :2]
        return len(ends) >= _FEWEST and bool((ends.std(axis=0) > _SPREAD * sizes.std(axis=0)).all())

    def doubts(self, frame: BoxFrame) -> Iterator[ColumnFinding]:
        """Doubts about ``frame``, each certain or not."""
        likelier = self.likelier(frame)
        unit = order_and_unit(likelier[0])[1] if likelier else "pixels"
        if unit in _FULL and self._smaller_by(frame) > 0:
            yield ColumnFinding(f"every value is at most {_FULL[unit]:g}", unit == "fractions")
        n_misfits = self._count(self._is_misfit(frame))
        if n_misfits > _TOLERATED * self.n_rows and (likelier or n_misfits > 1):
            what = f"in {self._share(n_misfits)} a box is inverted or outside its image"
            yield ColumnFinding(what, bool(likelier) and n_misfits >= _MOST_DOUBTFUL * self.n_rows)
        elif not likelier and (rivals := self.rivals(frame)):
            yield ColumnFinding(f"the boxes fit their images as {rivals[0]}, too", False)
        elif not likelier and self._fill_a_part(frame):
            part = "an upper left part of their images, as pixels of smaller copies do (scale those)"
            yield ColumnFinding(f"the boxes fill only {part}", False)
        corners = _corners(self._sides, self._sizes, frame, self._are_corners)
        n_tiny = self._count((corners[:, 2:] - corners[:, :2] <= 1).all(axis=1) & ~self._is_misfit(frame))
        if n_tiny > _TOLERATED * self.n_rows:
            yield ColumnFinding(f"in {self._share(n_tiny)} a box is of one pixel", False)
        yield from self._doubts_of_images(frame)

    def _fill_a_part(self, frame: BoxFrame) -> bool:
        """True if all boxes lie in one upper left part, all over it: a range of pixels, or of shares of the image."""
        if (n_positions := len(np.unique(self._sides, axis=0))) < _MANY:
            return False
        corners = _corners(self._sides, self._sizes, frame, self._are_corners)
        for unit in (self._sizes, np.ones_like(self._sizes)):
            far = (corners[:, 2:] / unit).max(axis=0)
            deviation = ((corners[:, :2] + corners[:, 2:]) / 2 / unit).std(axis=0)
            shares = np.clip(far * unit / self._sizes, 1e-9, 1)
            is_part = shares.max() <= _PART and n_positions * np.log(shares).sum(axis=1).mean() < _UNLIKELY
            if is_part and (deviation >= _OVER * far).all() and far.max() <= _EVEN * far.min():
                return True
        return False

    def _doubts_of_images(self, frame: BoxFrame) -> Iterator[ColumnFinding]:
        """Pixels of images that EXIF turns, which may be those of the file; and images that are counted from 1."""
        is_upright, is_raw = ~self._is_misfit(frame), ~self._is_misfit(frame, is_raw=True)
        n_turned, n_raw = self._count(self._turned), self._count(self._turned & is_raw & ~is_upright)
        if order_and_unit(frame)[1] == "pixels" and (n_raw or not (self._turned & is_upright & ~is_raw).any()):
            if n_raw > _TOLERATED * n_turned:
                what = f"in {self._share(n_raw)} a box fits its image only before EXIF turns it"
                yield ColumnFinding(f"{what}: turn the boxes, or save the images upright", True)
            elif n_turned:
                what = f"in {self._share(n_turned)} EXIF turns the image: boxes count in the upright one"
                yield ColumnFinding(what, False)
        several = [(row, {box.image for box in row.boxes}) for row in self._rows if len(row.sizes) > 1]
        n_beyond = sum(len(row.sizes) in images for row, images in several)
        if n_beyond and not any(0 in images for _, images in several):
            yield ColumnFinding(f"in {self._share(n_beyond)} images are counted from 1, not 0", True)

    def _smaller_by(self, frame: BoxFrame) -> float:
        """Logarithm of how much smaller the unit of the fitting frames is than the frame's, over all boxes."""
        return math.log(self._area(frame) / self._area(self.fitting[0])) * len(self._sides)

    def _is_misfit(self, frame: BoxFrame, *, is_raw: bool = False) -> NDArray[np.bool_]:
        """Mark boxes that are inverted or more than a pixel outside their image (``is_raw``: of the file's sides)."""
        sizes = self._sizes[:, ::-1] if is_raw else self._sizes
        corners = _corners(self._sides, sizes, frame, self._are_corners)
        is_inverted = (corners[:, 2:] <= corners[:, :2]).any(axis=1)
        outside = (corners[:, :2] < -1).any(axis=1) | (corners[:, 2:] > sizes + 1).any(axis=1)
        return np.asarray(is_inverted | outside)

    def _area(self, frame: BoxFrame) -> float:
        """Values that two coordinates may have in the frame's unit; of pixels the mean."""
        unit = order_and_unit(frame)[1]
        return _FULL[unit] ** 2 if unit in _FULL else float(np.exp(np.log(self._sizes).sum(axis=1).mean()))

    def _count(self, boxes: NDArray[np.bool_]) -> int:
        return int(np.unique(self._of_row[boxes]).size)

    def _share(self, n: int) -> str:
        return f"{n:,} of {self.n_rows:,} rows ({n / self.n_rows:.0%})"
