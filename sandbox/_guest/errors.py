"""Errors as the model sees them (type, message and the line of its own code, without the sandbox's frames),
and the interruption of code whose time is up, with the session's state left whole."""

import _signal  # type: ignore[import-not-found]
import linecache
import traceback

import cv2

from darkroom.sandbox._guest.messages import INTERRUPT

_MAX_MESSAGE = 2000
_MAX_LINE = 160
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
