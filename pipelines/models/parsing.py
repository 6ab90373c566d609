"""Parse what models write: untrusted Python to an AST (serialised by a lock), its literal boxes, JSON within text.

CPython up to 3.12 keeps the parser's depth once per process: a garbage collection in one thread's ``ast.parse`` may let
another thread parse, and the first fails with "AST constructor recursion depth mismatch" (python/cpython#106905).
``warnings.catch_warnings`` is not thread-safe either. The lock binds no other code that parses, as ``traceback`` does
to format an error: what fails like that is parsed again.
"""

import ast
import json
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from darkroom.pipelines.records.geometry import Box, box_from_corners

_parsing = threading.Lock()
_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
_TRIES = 20


def parsed(code: str) -> ast.Module | None:
    """The tree of ``code``; None where it does not parse. No warnings: the code is data here."""
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _parsed(code, _TRIES)


def _parsed(code: str, n_tries: int) -> ast.Module | None:
    try:
        return ast.parse(code)
    except _ERRORS:
        return None
    except SystemError:
        if n_tries == 1:
            raise
    return _parsed(code, n_tries - 1)


def literal(text: str) -> Any:
    """The value of a text that is one literal of Python; None of any other."""
    tree = parsed(text)
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    with suppress(ValueError, TypeError, RecursionError, MemoryError):  # TypeError: a list as a key
        return ast.literal_eval(tree.body[0].value)
    return None


def literal_boxes(code: str, width: int, height: int) -> list[Box]:
    """Every four literal numbers in a tuple or list, or assigned to four names, that could be a box, in pixels;
    fractions are those of an image of ``width`` x ``height``, rounded down as ``int`` does."""
    if (tree := parsed(code)) is None:
        return []
    slices_last = sorted(ast.walk(tree), key=lambda node: isinstance(node, ast.Subscript))
    boxes = [_box(box_sides(node), (width, height)) for node in slices_last]
    return list(dict.fromkeys(box for box in boxes if box is not None))


def box_sides(node: ast.AST) -> Sequence[ast.expr]:
    """The sides of a box: four expressions in a tuple or list, or a slice in two dimensions, as of numpy and OpenCV."""
    match node:
        case ast.Tuple(elts=sides, ctx=ast.Load()) | ast.List(elts=sides, ctx=ast.Load()) if len(sides) == 4:
            return sides
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice() as rows, ast.Slice() as columns, *_])):
            return [end for end in (columns.lower, rows.lower, columns.upper, rows.upper) if end is not None]
    return ()


def _box(nodes: Sequence[ast.expr], size: Sequence[int]) -> Box | None:
    values = [value for node in nodes if (value := _number(node)) is not None]
    if all(0 <= value <= 1 for value in values) and any(type(value) is float for value in values):
        values = [int(value * side) for value, side in zip(values, (*size, *size), strict=False)]
    with suppress(ValueError):
        return box_from_corners(values) if len(values) == len(nodes) == 4 else None
    return None


def _number(node: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None
    return value if type(value) in (int, float) else None


_DECODER = json.JSONDecoder()


def json_objects(text: str) -> Iterator[Any]:
    """Every JSON object in ``text`` that is not inside an earlier one, in order."""
    start = text.find("{")
    while start >= 0:
        try:
            json_object, end = _DECODER.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            end = start + 1
        else:
            yield json_object
        start = text.find("{", end)
