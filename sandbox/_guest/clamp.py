"""Moves the corners of a literal box into the image: `box = (100, 50, 9000, 800)`.

What counts as a box: four numbers bound to a name that contains `box` or `coord`, or unpacked into x1, y1, x2, y2 or
left, top, right, bottom. No smallest side is imposed and corners are not swapped.

A box is left alone when it may belong to another image than an input: after a call that makes an image of another size,
or in code that opens another file. With several inputs the largest sides count, so that no valid box is cut.
"""

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

_BOX_NAME = re.compile("box|coord", re.IGNORECASE)
_CORNERS = (["x1", "y1", "x2", "y2"], ["left", "top", "right", "bottom"])
_INPUT_NAME = re.compile(r"image_(?:path|clue)(?:_(\d+))?$")
_READERS = {"open", "imread"}
_RESIZER_NAMES = """
resize thumbnail rotate rotate_bound expand pad copyMakeBorder transpose warpAffine warpPerspective pyrUp pyrDown zoom
reduce repeat kron tile hstack vstack concatenate hconcat vconcat new zeros ones full rescale
"""
_RESIZERS = frozenset(_RESIZER_NAMES.split())
_BOX_SIDES = 4

Size = tuple[int, int]
Number = int | float


class Clamped(NamedTuple):
    """A statement whose box was changed."""

    node: ast.Assign | ast.AnnAssign
    after: str


class BoxClamp:
    """Remembers between rounds whether the session has made images of other sizes."""

    def __init__(self, sizes: Iterable[Size]) -> None:
        self._sizes = list(sizes)
        self._resized = False

    def apply(self, tree: ast.Module) -> list[Clamped]:
        """Change the boxes of the tree in place."""
        size, first_foreign = self._size_of_inputs(tree), _first_foreign_line(tree)
        boxes = [node for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign) and _is_box(node)]
        usable = [node for node in boxes if size and (first_foreign is None or node.lineno < first_foreign)]
        self._resized |= first_foreign is not None
        return [Clamped(node, ast.unparse(node)) for node in usable if size and _clamp_literal(node.value, size)]

    def _size_of_inputs(self, tree: ast.Module) -> Size | None:
        named = {index for index in map(_input_index, ast.walk(tree)) if index is not None and index < len(self._sizes)}
        if not named and self._resized:
            return None  # the box may belong to an image that an earlier round made
        sizes = [self._sizes[index] for index in named] or self._sizes
        return (max(width for width, _ in sizes), max(height for _, height in sizes)) if sizes else None


def clamp_box(box: tuple[Number, ...], size: Size) -> tuple[Number, ...]:
    """The nearest box `(x1, y1, x2, y2)` whose corners lie in an image of `size` (width, height)."""
    return tuple(min(max(side, 0), most) for side, most in zip(box, (*size, *size), strict=True))


def _is_box(node: ast.Assign | ast.AnnAssign) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return isinstance(node.value, ast.Tuple | ast.List) and any(map(_names_box, targets))


def _names_box(target: ast.expr) -> bool:
    if isinstance(target, ast.Name):
        return _BOX_NAME.search(target.id) is not None
    if isinstance(target, ast.Tuple | ast.List):
        return [getattr(element, "id", "") for element in target.elts] in _CORNERS
    return False


def _clamp_literal(literal: ast.expr | None, size: Size) -> bool:
    if not isinstance(literal, ast.Tuple | ast.List) or len(literal.elts) != _BOX_SIDES:
        return False
    box = [_number(element) for element in literal.elts]
    numbers = tuple(side for side in box if side is not None)
    if len(numbers) != _BOX_SIDES or clamp_box(numbers, size) == numbers:
        return False
    sides = zip(literal.elts, clamp_box(numbers, size), strict=True)
    literal.elts = [ast.copy_location(ast.Constant(side), element) for element, side in sides]
    return True


def _number(node: ast.expr) -> Number | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None


def _input_index(node: ast.AST) -> int | None:
    match = _INPUT_NAME.match(node.id) if isinstance(node, ast.Name) else None
    return int(match[1] or 0) if match else None


def _first_foreign_line(tree: ast.Module) -> int | None:
    """Line of the first call that makes an image of another size or opens another file than an input."""
    return min(
        (node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_foreign(node)), default=None
    )


def _is_foreign(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _READERS:
        return not any(_input_index(node) is not None for argument in call.args for node in ast.walk(argument))
    return name in _RESIZERS
