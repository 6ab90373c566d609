"""Somebody's program as a syntax tree, in one thread at a time.

CPython up to 3.12 keeps the parser's depth once per process: a garbage collection in one thread's ``ast.parse`` may let
another thread parse, and the first fails with "AST constructor recursion depth mismatch" (python/cpython#106905).
``warnings.catch_warnings`` is no more for several threads than that.
"""

from __future__ import annotations

import ast
import threading
import warnings

_parsing = threading.Lock()
_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError)


def parsed(code: str) -> ast.Module | None:
    """The tree of ``code``; None where it does not parse. It warns of nothing: the code is somebody's data here."""
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except _FAULTS:
            return None
