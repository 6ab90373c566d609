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
from collections.abc import Iterable, Iterator
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


def literal_boxes(code: str) -> list[Box]:
    """Every four literal numbers in a tuple or list, or assigned to four names, that could be a box."""
    tree = parsed(code)
    if tree is None:
        return []
    boxes = [_box(node.elts) for node in ast.walk(tree) if isinstance(node, ast.Tuple | ast.List)]
    boxes += _slices(tree)
    return list(dict.fromkeys(box for box in boxes if box is not None))


def _slices(tree: ast.AST) -> Iterable[Box | None]:
    """``image[y1:y2, x1:x2]`` as numpy and OpenCV users write it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) >= 2:
            rows, columns = node.slice.elts[:2]
            if isinstance(rows, ast.Slice) and isinstance(columns, ast.Slice):
                ends = (columns.lower, rows.lower, columns.upper, rows.upper)
                yield _box([end for end in ends if end is not None])


def _box(nodes: list[ast.expr]) -> Box | None:
    values = [value for node in nodes if (value := _number(node)) is not None]
    try:
        return box_from_corners(values) if len(values) == len(nodes) == 4 else None
    except ValueError:
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
