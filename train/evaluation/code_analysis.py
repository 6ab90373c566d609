"""The syntax tree of a round's code: the kinds of tools in it, and the boxes that it crops.

The kinds (``tools_of``) are those of PyVision-RL's figures 21, 23 and 25 as far as rules separate them; a round may be
of several. ``no_op`` only shows an image unchanged (figure 25, appendix D.3); code that does not parse is ``other``.

Boxes are computed from literals: ``left = 100`` above, ``image.crop((left, …))`` below.

    crop_boxes("w, h = image.size\\nc = image.crop((w // 2, 0, w, h // 2))", 640, 480)     # [Box(320, 0, 640, 240)]

Names assigned a number (the last counts, whatever the branch), arithmetic and the image's size are evaluated; a box
with anything else is skipped. Boxes only say where to search first: pixels decide (``observed_images.py``).
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from enum import StrEnum

from darkroom.pipelines.models.parsing import box_sides, parsed
from darkroom.pipelines.records import Observation
from darkroom.pipelines.records.geometry import Box, box_from_corners
from darkroom.pipelines.verification.grading.word_lists import read_words


class Tool(StrEnum):
    """Kinds of tools, in the order in which tables show them."""

    CROP = "crop"
    ROTATE = "rotate"
    CONTRAST = "contrast"
    SEGMENTATION = "segmentation"
    MARKS = "marks"
    PLOT = "plot"
    COMPUTE = "compute"
    FRAMES = "frames"
    NO_OP = "no_op"
    OTHER = "other"


_DATA = read_words(__file__)
_CALLS = {Tool(kind): frozenset(names) for kind, names in _DATA["calls"].items()}
_DRAWING, _NUMBERS, _PIXELS, _SHOWS, _CHANGES = (
    frozenset(_DATA[name]) for name in ("drawing", "numbers", "pixels", "shows", "changes")
)
_BUILT_IN = frozenset({"filter"})
_TURNS = re.compile(r"ROTATE|FLIP|TRANSPOSE|TRANSVERSE")
_VIDEO = re.compile(r"video_(?:clue|path)")
_IMAGE = re.compile(r"image|img|pic|photo", re.IGNORECASE)


def tools_of(code: str, observation: Observation, *, untouched: bool = False) -> frozenset[Tool]:
    """The kinds of ``code`` with ``observation``; at least one. ``untouched``: every observed image is an unchanged one
    of the question, measured on pixels: then nothing was cropped, rotated or enhanced, whatever the code calls."""
    tree = parsed(code)
    if tree is None:
        return frozenset({Tool.OTHER})
    nodes = list(ast.walk(tree))
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    methods = {function.attr for function in functions if isinstance(function, ast.Attribute)}
    calls = methods | {function.id for function in functions if isinstance(function, ast.Name)}
    kinds = _implied(nodes, calls, methods) - ({Tool.CROP, Tool.ROTATE, Tool.CONTRAST} if untouched else set())
    if kinds:
        return frozenset(kinds)
    if observation.images and (untouched or (calls & _SHOWS and not calls & _CHANGES)):
        return frozenset({Tool.NO_OP})
    computes = any(isinstance(node, ast.BinOp | ast.For | ast.While | ast.comprehension) for node in nodes)
    return frozenset({Tool.COMPUTE if computes and observation.text.strip() and not observation.images else Tool.OTHER})


def _implied(nodes: Sequence[ast.AST], calls: AbstractSet[str], methods: AbstractSet[str]) -> set[Tool]:
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    # ``filter`` is also a built-in of Python: it counts as a method only
    kinds = {tool for tool, own in _CALLS.items() if calls & (own - _BUILT_IN) | methods & own}
    if calls & _DRAWING:
        kinds.add(Tool.PLOT)
    if Tool.PLOT in kinds and "imshow" in calls:
        kinds = (kinds - {Tool.PLOT}) | {Tool.MARKS}
    modules = [name.name for node in nodes if isinstance(node, ast.Import) for name in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    reads_pixels = bool(calls & _PIXELS) or any(map(_IMAGE.search, names))
    rules = {
        Tool.CROP: reads_pixels and any(map(_cuts, nodes)),
        Tool.ROTATE: "transpose" in calls and any(map(_TURNS.search, names)),
        Tool.FRAMES: any(map(_VIDEO.search, names)),
        Tool.CONTRAST: reads_pixels and any(map(_stretches, nodes)),
        Tool.COMPUTE: not _NUMBERS.isdisjoint(module.partition(".")[0] for module in modules),
    }
    return kinds | {tool for tool, is_so in rules.items() if is_so}


def _cuts(node: ast.AST) -> bool:
    """Match ``image[y1:y2, x1:x2]``; a slice without ends (``image[:, :, 0]``) cuts nothing off."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice() as rows, ast.Slice() as columns, *_])):
            return all(side.lower or side.upper for side in (rows, columns))
    return False


def _stretches(node: ast.AST) -> bool:
    """Match ``np.clip(image * 1.5, 0, 255)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="clip"), args=args):
            return [arg.value for arg in args if isinstance(arg, ast.Constant)][-2:] == [0, 255]
    return False


_SIGNS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {"int": int, "round": round, "max": max, "min": min, "float": float}


def crop_boxes(code: str, width: int, height: int) -> list[Box]:
    """Compute the boxes inside an image of ``width`` x ``height`` pixels that ``code`` crops or slices."""
    tree = parsed(code)
    if tree is None:
        return []
    numbers = _Numbers(width, height)
    boxes: list[Box] = []
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):  # as written
        if isinstance(node, ast.Assign):
            numbers.assign(node)
        values = numbers.all(box_sides(node)) or ()
        if len(values) == 4:
            with suppress(ValueError):  # corners of no box
                boxes.append(box_from_corners(values).clipped(width, height))
    return list(dict.fromkeys(box for box in boxes if box.area))


class _Numbers:
    """Numeric values of names, as far as they can be computed."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = float(width), float(height)
        self._values: dict[str, float | None] = {}

    def assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Tuple | ast.List):
                names, values = target.elts, self._several(node.value, len(target.elts))
            else:
                names, values = [target], [self.value(node.value)]
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name):
                    self._values[name.id] = value

    def all(self, nodes: Sequence[ast.expr]) -> list[float] | None:
        values = [self.value(node) for node in nodes]
        return None if None in values else [value for value in values if value is not None]

    def value(self, node: ast.expr) -> float | None:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name):
                return self._values.get(name)
            case ast.Attribute(attr=name):
                return {"width": self._width, "height": self._height}.get(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._computed(operator.neg, [operand])
            case ast.Subscript(value=ast.Attribute(attr=name), slice=ast.Constant(value=int() as index)):
                sizes = {"size": (self._width, self._height), "shape": (self._height, self._width)}
                return dict(enumerate(sizes.get(name, ()))).get(index)
            case ast.BinOp(left=left, op=sign, right=right):
                return self._computed(_SIGNS.get(type(sign)), [left, right])
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._computed(_FUNCTIONS.get(name), args)
        return None

    def _computed(self, function: Callable[..., float] | None, operands: Sequence[ast.expr]) -> float | None:
        values = self.all(operands)
        if function is None or not values:
            return None
        with suppress(ZeroDivisionError, OverflowError, TypeError, ValueError):
            return float(function(*values))
        return None

    def _several(self, node: ast.expr, n: int) -> Sequence[float | None]:
        """``100, 60`` or ``image.size`` or ``array.shape[:2]``."""
        if isinstance(node, ast.Tuple | ast.List):
            return [self.value(element) for element in node.elts]
        if isinstance(node, ast.Attribute) and node.attr == "size":
            return [self._width, self._height]
        attributes = [inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)]
        return [self._height, self._width, None] if "shape" in attributes else [None] * n
