"""Errors as the model sees them (type, message and the line of its own code, without the sandbox's frames),
and the interruption of code whose time is up, with the session's state left whole.

After an error stands its remedy, where one is known: what `errors.toml` says of the message, and what there is at hand
(names that are alike, the line that imports a name, a dict's keys, a list's length, how a function is called, files).
"""

import _signal  # type: ignore[import-not-found]
import ast
import difflib
import errno
import importlib.util
import inspect
import linecache
import os
import re
import sys
import tomllib
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import cv2

from darkroom.sandbox._guest.elsewhere import THERE, listed, what_there_is
from darkroom.sandbox._guest.messages import CELL_PREFIX, INTERRUPT
from darkroom.sandbox._guest.patched_modules import PREPARED

_MAX_MESSAGE = 2000
_MAX_LINE = 160
_MAX_REMEDY = 1500
_MAX_COMPARED, _MAX_ALIKE, _LEAST_ALIKE = 5000, 3, 0.75
_MAX_NAME, _MAX_FORMS = 80, 400
_GIVEN = {*PREPARED, "display"}
_TOLD: dict[str, Any] = tomllib.loads(Path(__file__).with_name("errors.toml").read_text("utf-8"))


def _pattern(says: str) -> str:
    """The parts of an error, between `…`, in this order, each where it first stands and nowhere else."""
    return "".join(f"(?>.*?{re.escape(part)})" for part in says.split("…"))


_KNOWN = [
    (re.compile(rf"\A(?:{'|'.join(map(_pattern, each['says']))})", re.DOTALL), each["do"]) for each in _TOLD["errors"]
]
_OPENCV_OUT_OF_MEMORY = -4
_set_handler = _signal.signal  # Python's wrapper makes enums of numbers: a twentieth of an empty call


def describe(error: BaseException, cell: str) -> str:
    """Describe an error: `ZeroDivisionError: division by zero (line 3: x = y / 0)`."""
    return f"{type(error).__name__}: {text_of(error)}{line_of(error, cell)}"


def remember_lines(cell: str, source: str) -> None:
    """Keep the source for tracebacks that the code prints, and for the line that an error names."""
    linecache.cache[cell] = (len(source), None, source.splitlines(keepends=True), cell)


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (
        isinstance(error, cv2.error) and getattr(error, "code", 0) == _OPENCV_OUT_OF_MEMORY
    )


def text_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return str(error.msg)
    try:
        return str(error).strip()[:_MAX_MESSAGE]
    except Exception:  # noqa: BLE001 - the code's own __str__
        return "<no text>"


def line_of(error: BaseException, cell: str) -> str:
    """Name ` (line 3: x = y / 0)`, the last line of this cell on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename == cell:
        number = error.lineno
    else:
        steps = traceback.walk_tb(error.__traceback__)
        numbers = [number for frame, number in steps if frame.f_code.co_filename == cell]
        number = numbers[-1] if numbers else None
    if number is None:
        return ""
    text = linecache.getline(cell, number).strip()
    return f" (line {number}: {text[:_MAX_LINE]})" if text else f" (line {number})"


def remedy(error: BaseException, described: str, names: Mapping[str, Any], paths: list[str], work_folder: str) -> str:
    """Tell what helps against the error, and list what there is; empty for an error of which nothing is known."""
    told = next((f"; {do}" for says, do in _KNOWN if says.match(described)), "")
    if isinstance(error, NameError) and error.name:
        shown = [name for name in names if name not in _GIVEN and not name.startswith("_")]
        told += f"{_import_of(error.name) or _alike(error.name, names)}; defined are {listed(shown)}"
    elif isinstance(error, ImportError) and not told:
        module, _, name = (error.name or "").rpartition(".")
        if " import name '" in error.msg:
            module, name = error.name or "", error.msg.split("'")[1]
        told = _alike(name, dir(sys.modules[module])) if module in sys.modules else ""
    elif isinstance(error, AttributeError) and error.name and not told:
        told = _alike(error.name, object.__dir__(error.obj))
    elif isinstance(error, FileNotFoundError):
        told += "" if THERE in str(error.strerror) else f"; {what_there_is(paths, work_folder)}"
    is_refused = isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    if is_refused or isinstance(error, FileNotFoundError):
        told += f"; files are written to {work_folder}"
    with suppress(Exception):  # the expression may be beyond what is looked up
        told += _at_hand(error, paths, work_folder)
    return told[:_MAX_REMEDY]


def _import_of(name: str) -> str:
    lines = [line.format(name) for line, names in _TOLD["imports"].items() if name in names.split()]
    is_there = lines and importlib.util.find_spec(lines[0].split()[1].partition(".")[0])
    return f"; it is not imported: {lines[0]}" if is_there else ""


def _alike(name: str, names: Iterable[Any]) -> str:
    """Ask for names that differ in a few letters, or in what follows them."""
    near = [each for each in names if type(each) is str and len(each) <= _MAX_NAME][:_MAX_COMPARED]
    near = [each for each in near if each.startswith("_") == name.startswith("_")]
    alike = difflib.get_close_matches(name[:_MAX_NAME], near, _MAX_ALIKE, _LEAST_ALIKE)
    alike = alike or [each for each in near if len(each) > 2 and (name.startswith(each) or each.startswith(name))]
    return f"; did you mean {' or '.join(map(repr, alike[:_MAX_ALIKE]))}?" if alike else ""


def _at_hand(error: BaseException, paths: list[str], work_folder: str) -> str:
    """Tell what the expression that failed was given: keys instead of one, a length, the parameters of a function."""
    node, frame = _failed_expression(error.__traceback__)
    if isinstance(node, ast.Subscript) and isinstance(error, LookupError):
        there, text = _value(node.value, frame), ast.unparse(node.value)[:_MAX_NAME]
        if there is os.environ or there is sys.argv:
            return f"; no program sets {text}: {what_there_is(paths, work_folder)}"
        if isinstance(error, KeyError) and (isinstance(there, dict) or type(there).__module__.startswith("pandas.")):
            keys = listed(repr(key)[:_MAX_NAME] for key in there if type(key) in (str, int))
            return f"; {text} has {'the keys ' * bool(keys)}{keys or 'no keys'}"
        if type(there) in (list, tuple, str) and type(error) is IndexError:
            return f"; {text} has {len(there)} items"
    elif isinstance(node, ast.Call) and "argument" in str(error):
        return f"; it is called as {_forms(node.func, _value(node.func, frame))}"
    return ""


def _failed_expression(trace: TracebackType | None) -> tuple[ast.expr, FrameType]:
    """The expression of the code's own that was evaluated, and its frame. Raises an error where there is none."""
    steps = zip(traceback.extract_tb(trace), traceback.walk_tb(trace), strict=True)
    at, (frame, _) = [step for step in steps if step[0].filename.startswith(CELL_PREFIX)][-1]
    span = ast.Pass(
        lineno=at.lineno or 1, col_offset=at.colno or 0, end_lineno=at.end_lineno, end_col_offset=at.end_colno
    )
    text = ast.get_source_segment("".join(linecache.getlines(at.filename)), span)
    return ast.parse(f"({text})", mode="eval").body, frame


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Look up what a name, an attribute or an item was, without running any code. Raises an error for all else."""
    if isinstance(node, ast.Name):
        return (frame.f_globals | frame.f_locals)[node.id]
    if isinstance(node, ast.Attribute):
        return inspect.getattr_static(_value(node.value, frame), node.attr)
    if isinstance(node, ast.Subscript) and type(there := _value(node.value, frame)) in (dict, list, tuple):
        return there[_value(node.slice, frame)]
    return ast.literal_eval(node)


def _forms(node: ast.expr, function: Any) -> str:
    """The calls that a function takes, by its signature or, as OpenCV tells them, by the lines of its docstring."""
    name = ast.unparse(node)[:_MAX_NAME]
    forms = [line for line in str(function.__doc__).splitlines() if line.startswith(f"{name.rpartition('.')[2]}(")]
    return (" or ".join(forms[:2]) or f"{name}{inspect.signature(function)}")[:_MAX_FORMS]


class Interrupted(BaseException):
    """Raised inside the code; not an Exception, so that `except Exception` does not swallow it."""


class Interruption:
    """Lets the host interrupt the code, once a call. `fired` stays true where it was swallowed, as by a finaliser."""

    def __enter__(self) -> None:
        self.fired, self._armed = False, True
        _set_handler(INTERRUPT, self._interrupt)  # anew for each call: the code may have changed it

    def __exit__(self, *_: object) -> None:
        self._armed = False

    def _interrupt(self, _number: int, _frame: object) -> None:
        if self._armed:  # else it comes too late: the code has ended
            self.fired, self._armed = True, False
            raise Interrupted
