"""Repairs the boxes of crops that would give nothing, while the model's code runs.

    image.crop((900, 800, 100, 50))                  of 2000x1500    crop((100, 50, 900, 800))
    image.resize((99, 99), box=(900, 0, 100, 50))    of 2000x1500    resize(box=(100, 0, 900, 50))
    array[800:50, 100:9000]                          of 2000x1500    image[50:800, 100:2000]

Boxes are `(x1, y1, x2, y2)` and slices `[y1:y2, x1:x2]` in pixels of that image: top-left origin, x2 and y2 exclusive.
A repaired box has its corners ordered and clamped; what then covers no pixel is a ValueError that names box and image.
No smallest side is imposed, and every change is an edit.

- Pillow: `crop(box)` and `resize(box=…)` where the model's own code calls them with four numbers in a tuple, a list or
  an array. A box that reaches beyond its image is clamped, as Thyme and CodeV do; Pillow's `crop` would add black. A
  box of `crop` that holds the whole image pads it, and keeps that meaning unless it asks for more pixels than an image
  may have. A box of `crop` is judged in whole pixels, as Pillow rounds it.
- NumPy, and so OpenCV: a slice of rows and columns whose four ends are given, of an array that looks like an image;
  float matrices are mathematics. Only what NumPy answers with nothing is repaired, and of it only the empty side: NumPy
  itself clips ends that lie beyond the image and counts negative ones from its end.

`instrument` makes `array[y1:y2, x1:x2]` into `<sliced>(array)[y1:y2, x1:x2]`, but in targets of assignments and `del`.
Anything but an array is returned as it is, so that the code's own frame indexes it.
"""

import ast
import builtins
import functools
import math
import sys
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from PIL import Image

from darkroom.sandbox._guest.edits import SourceEdit
from darkroom.sandbox._guest.messages import CELL_PREFIX

Number = int | float
Numbers = tuple[Number, ...]
Size = tuple[int, int]
"""Width and height."""

_KIND = "clamp_box"
_MAX_RECORDED = 64
_SLICED = "<sliced>"
_SIDES = 4
_CHANNELS = (1, 3, 4)
_FARTHEST = 2**53
"""Sides beyond count as this one: infinity has no whole number, and texts stay short."""


class Repairs:
    """The repairs of boxes of one session; `edits` are those of the call that began last. Disabled, it does nothing."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self.begin()

    def begin(self) -> None:
        """Forget the edits of the call before."""
        self._recorded: list[SourceEdit] = []
        self._latest: SourceEdit | None = None
        self._n_more = 0

    @property
    def edits(self) -> list[SourceEdit]:
        """Edits without repetitions in a row; after 64, one last edit counts the others."""
        more = [SourceEdit(_KIND, "", f"# … and {self._n_more} more")] if self._n_more else []
        return self._recorded + more

    def install(self) -> None:
        """Take the place of `Image.crop` and `Image.resize`; once per process."""
        if not self._enabled:
            return
        plain_crop, plain_resize, fitted = Image.Image.crop, Image.Image.resize, self._fitted

        @functools.wraps(plain_crop)
        def crop(self: Image.Image, box: Any = None) -> Any:
            return plain_crop(self, fitted(box, self.size, "crop(", is_rounded=True))

        @functools.wraps(plain_resize)
        def resize(
            self: Image.Image, size: Any, resample: Any = None, box: Any = None, reducing_gap: Any = None
        ) -> Any:
            box = fitted(box, self.size, "resize(box=", is_rounded=False)
            return plain_resize(self, size, resample, box, reducing_gap)

        setattr(Image.Image, "crop", crop)  # noqa: B010  # assigning a method is not typed
        setattr(Image.Image, "resize", resize)  # noqa: B010
        setattr(builtins, _SLICED, lambda thing: _Sliced(thing, self) if type(thing) is np.ndarray else thing)

    def instrument(self, tree: ast.Module) -> ast.Module:
        """The tree itself, with its slices prepared in place; new nodes have the places of the old ones."""
        for node in _slices(tree) if self._enabled else ():
            helper = ast.copy_location(ast.Name(_SLICED, ast.Load()), node.value)
            node.value = ast.copy_location(ast.Call(helper, [node.value], []), node.value)
        return tree

    def _fitted(self, box: Any, size: Size, call: str, *, is_rounded: bool) -> Any:
        """The box for Pillow, which takes no array: as it is where it lies inside, is none, or is not of the code."""
        if box is None or not sys._getframe(2).f_code.co_filename.startswith(CELL_PREFIX):
            return box
        for part in box if isinstance(box, list | tuple) else (box,):
            if isinstance(part, str | list | tuple):
                kind = "strings" if isinstance(part, str) else "pairs"
                raise TypeError(
                    f"{call.partition('(')[0]} takes four numbers (x1, y1, x2, y2), not {kind}: {box!r:.80}"
                )
        sides = _numbers(box)
        if sides is None:
            return box
        numbers = tuple(side if math.isnan(side) else _whole(side) for side in sides) if is_rounded else sides
        is_fit = _is_inside(numbers, size) or (is_rounded and _pads(numbers, size))
        if is_fit and not isinstance(box, np.ndarray):
            return box
        text = _shown(box, sides)
        if not is_fit and all(0 <= side <= 1 for side in sides) and any(side % 1 for side in sides):
            raise ValueError(f"{call}{text}) has fractions: a box counts pixels of the image of {size[0]}x{size[1]}")
        fitted = numbers if is_fit else fit_box(numbers, size, name=f"{call.partition('(')[0]} box {text}")
        self._record(f"{call}{text})", f"{call}{_text(fitted)})")
        return fitted

    def cut(self, array: "np.ndarray[Any, Any]", key: tuple[Any, ...]) -> Any:
        """Evaluate `array[key]`, repaired where that is a slice of an image and comes out empty."""
        plain = array[key]
        if plain.size or not _looks_like_an_image(array) or not (_has_ends(key[0]) and _has_ends(key[1])):
            return plain
        (rows, columns, *others), (height, width) = key, array.shape[:2]
        (y1, y2), (x1, x2) = _reached(rows, height), _reached(columns, width)
        before = f"[{_ends(rows.start, rows.stop)}, {_ends(columns.start, columns.stop)}]"
        x1, y1, x2, y2 = cast(tuple[int, ...], fit_box((x1, y1, x2, y2), (width, height), name=f"slice {before}"))
        result = array[(slice(y1, y2), slice(x1, x2), *others)]
        if not result.size:
            return plain  # another index asks for nothing
        self._record(f"image{before}", f"image[{_ends(y1, y2)}, {_ends(x1, x2)}]")
        return result

    def _record(self, before: str, after: str) -> None:
        edit = SourceEdit(_KIND, before, after)
        if edit == self._latest:
            return
        self._latest = edit
        if len(self._recorded) < _MAX_RECORDED:
            self._recorded.append(edit)
        else:
            self._n_more += 1


class _Sliced:
    """An array for the time of one slice."""

    __slots__ = ("_array", "_repairs")

    def __init__(self, array: "np.ndarray[Any, Any]", repairs: Repairs) -> None:
        self._array, self._repairs = array, repairs

    def __getitem__(self, key: Any) -> Any:
        return self._repairs.cut(self._array, key)


def fit_box(box: Numbers, size: Size, *, name: str) -> Numbers:
    """Corners `(x1, y1, x2, y2)` ordered and clamped to an image of `size`. ValueError where no pixel is left."""
    image = f"the image of {size[0]}x{size[1]}"
    if any(math.isnan(side) for side in box):
        raise ValueError(f"{name} has a side that is not a number, in {image}")
    x1, y1, x2, y2 = box
    (x1, x2), (y1, y2) = sorted((x1, x2)), sorted((y1, y2))
    if x1 == x2 or y1 == y2:
        raise ValueError(f"{name} has no area in {image}")
    fitted = tuple(min(max(side, 0), most) for side, most in zip((x1, y1, x2, y2), size * 2, strict=True))
    if fitted[0] >= fitted[2] or fitted[1] >= fitted[3]:
        raise ValueError(f"{name} is outside {image}")
    return fitted


def _is_inside(box: Numbers, size: Size) -> bool:
    x1, y1, x2, y2 = box
    return 0 <= x1 < x2 <= size[0] and 0 <= y1 < y2 <= size[1]


def _pads(box: Numbers, size: Size) -> bool:
    """Check that Pillow's crop shows the whole image with a border, and no more pixels than an image may have."""
    x1, y1, x2, y2 = box
    holds_all = x1 <= 0 and y1 <= 0 and x2 >= size[0] and y2 >= size[1]
    return holds_all and (x2 - x1) * (y2 - y1) <= (Image.MAX_IMAGE_PIXELS or math.inf)


def _numbers(box: Any) -> Numbers | None:
    """Read a box of four numbers; None for all else, on which Pillow has its own error."""
    is_row = isinstance(box, tuple | list) or (isinstance(box, np.ndarray) and box.ndim == 1)
    if not is_row or len(box) != _SIDES:
        return None
    if not all(isinstance(side, int | float | np.integer | np.floating) for side in box):
        return None
    return tuple(_whole(int(side)) if isinstance(side, int | np.integer) else float(side) for side in box)


def _shown(box: Any, numbers: Numbers) -> str:
    """The box as the code may have written it."""
    text = _text(numbers)
    if isinstance(box, tuple):
        return text
    return f"[{text[1:-1]}]" if isinstance(box, list) else f"np.array([{text[1:-1]}])"


def _whole(side: Number) -> int:
    return round(max(-_FARTHEST, min(side, _FARTHEST)))


def _text(numbers: Numbers) -> str:
    return f"({', '.join(map(str, numbers))})"


def _ends(start: Any, stop: Any) -> str:
    return f"{_whole(start)}:{_whole(stop)}"


def _looks_like_an_image(array: "np.ndarray[Any, Any]") -> bool:
    is_gray, has_channels = array.ndim == 2, array.ndim == 3 and array.shape[2] in _CHANNELS
    is_image = has_channels or (is_gray and array.dtype == np.uint8)
    return is_image and (array.dtype == np.uint8 or array.dtype.kind == "f") and array.size > 0


def _has_ends(side: Any) -> bool:
    if not isinstance(side, slice) or side.step not in (None, 1):
        return False
    return all(isinstance(end, int | np.integer) and not isinstance(end, bool) for end in (side.start, side.stop))


def _reached(side: slice, length: int) -> tuple[int, int]:
    """The pixels that NumPy would take, or the ends as they were given where it would take none."""
    start, stop, _ = side.indices(length)
    return (start, stop) if start < stop else (_whole(side.start), _whole(side.stop))


def _slices(tree: ast.Module) -> Iterator[ast.Subscript]:
    """Every value that is subscripted by slices of rows and columns; nothing within the target of an assignment."""
    todo: list[ast.AST] = [tree]
    for node in todo:  # which grows
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            continue
        todo += ast.iter_child_nodes(node)
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
            continue
        ends = node.slice.elts[:2]
        if len(ends) > 1 and all(isinstance(end, ast.Slice) and end.lower and end.upper for end in ends):
            yield node
