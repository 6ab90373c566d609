"""Runs one call after another in the locked session, in one namespace that lives as long as the session.

Everything that it says is untrusted by the host: the code runs in this very process and can change any of it.
"""

import ast
import builtins
import gc
import io
import json
import linecache
import os
import random
import signal
import sys
import tempfile
import traceback
import types
from typing import Any, NamedTuple, NoReturn

import cv2
import numpy as np
from PIL import Image

from sandbox._guest import warm
from sandbox._guest.clamp import BoxClamp
from sandbox._guest.config import IMAGE_FOLDER, WORK_FOLDER, SessionRequest
from sandbox._guest.edits import SourceEdit, clamp_boxes, move_folders, parse_repaired
from sandbox._guest.figures import Figures, Pixels
from sandbox._guest.output import CappedOutput
from sandbox._guest.saved import Budget, SavedFiles, choose_shown, read_image
from sandbox._guest.scan import Blocked, ScanMode, refuse_dangerous_calls
from sandbox._guest.shared import CELL_PREFIX, SharedImage, hook_opencv, hook_pillow, names_of
from sandbox.limits import Limits
from sandbox.wire import HEADER

_MAX_ERROR, _MAX_NAME = 2000, 200
_OPENCV_OUT_OF_MEMORY = -4


class _Interrupted(BaseException):
    """Raised by the timer inside the code; not an Exception, so that `except Exception` does not swallow it."""


class _Outcome(NamedTuple):
    status: str
    error: str | None = None


def report_failed_start(fd: int, nonce: int, error: BaseException) -> None:
    message = "".join(traceback.format_exception(error))[-_MAX_ERROR:]
    _send(fd, nonce, {"failed": message}, [])


class Runner:
    def __init__(self, fd: int, request: SessionRequest, limits: Limits, images: list[SharedImage]) -> None:
        self._fd, self._nonce, self._limits = fd, request.nonce, limits
        self._scan: ScanMode = request.scan
        self._output = CappedOutput(limits.output_chars)
        self._figures = Figures(max_images=limits.max_images, max_pixels=limits.max_pixels)
        self._saved = SavedFiles(request.work_folder)
        self._clamp = BoxClamp([(image.decoded.width, image.decoded.height) for image in images])
        self._folders = _moved_folders(request.work_folder, images)
        self._hidden = _hidden_prefixes(self._folders)
        self._n_calls = 0
        _seed(request.seed)
        _move_home(request.work_folder)
        self._install(limits)
        self._names = self._namespace(images)

    def serve(self) -> NoReturn:
        """Answer calls until the host hangs up or kills."""
        _send(self._fd, self._nonce, {"ready": True}, [])
        while True:
            nonce, length = HEADER.unpack(_read(self._fd, HEADER.size))
            code = _read(self._fd, length).decode("utf-8", "surrogatepass")
            reply, pixels = self._answer(code)
            _send(self._fd, nonce, reply, pixels)

    def _install(self, limits: Limits) -> None:
        sys.stdin = io.StringIO("")
        sys.stdout = sys.stderr = self._output
        for name in ("__stdout__", "__stderr__"):  # declared Final, hence by name
            setattr(sys, name, None)
        Image.MAX_IMAGE_PIXELS = limits.max_pixels
        self._figures.install()
        gc.enable()

    def _namespace(self, images: list[SharedImage]) -> dict[str, Any]:
        hook_pillow(images)
        hook_opencv(images)
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main  # pickle and dataclasses look classes up there
        names = vars(main)
        names |= {"__builtins__": builtins, "display": self._figures.display}
        names |= warm.prepared_names()
        names |= names_of(images)
        return names

    def _answer(self, code: str) -> tuple[dict[str, Any], list[bytes]]:
        self._output.clear()
        self._figures.clear()
        edits: list[SourceEdit] = []
        cell = f"{CELL_PREFIX} {self._n_calls}>"
        self._n_calls += 1
        outcome = self._execute(code, cell, edits)
        try:
            return self._reply(outcome, edits)
        except MemoryError:
            self._figures.clear()
            too_large = _Outcome("memory", "MemoryError: not enough memory to return the images")
            return self._fields(too_large, edits, self._output.text(), [], []), []

    def _execute(self, code: str, cell: str, edits: list[SourceEdit]) -> _Outcome:
        timer = _Timer(self._limits.seconds)
        try:
            with timer:
                exec(self._compile(code, cell, edits), self._names)  # one dict: functions see the code's globals
        except _Interrupted as error:
            return self._timeout(_line(error, cell))
        except Blocked as error:
            return _Outcome("blocked", f"PermissionError: {error}")
        except SystemExit as error:
            return _Outcome("ok") if error.code in (None, 0) else _Outcome("error", f"SystemExit: {_text_of(error)}")
        except BaseException as error:  # noqa: BLE001 - the code may raise anything
            status = "memory" if _is_out_of_memory(error) else "error"
            return _Outcome(status, f"{type(error).__name__}: {_text_of(error)}{_line(error, cell)}")
        return self._timeout("") if timer.fired else _Outcome("ok")

    def _timeout(self, line: str) -> _Outcome:
        return _Outcome("timeout", f"TimeoutError: still running after {self._limits.seconds:g} s{line}")

    def _compile(self, code: str, cell: str, edits: list[SourceEdit]) -> types.CodeType:
        tree, repairs = parse_repaired(code, cell)
        edits += repairs
        source = repairs[-1].after if repairs else code
        refuse_dangerous_calls(tree, self._scan)
        edits += clamp_boxes(tree, source, self._clamp)
        edits += move_folders(tree, self._folders)
        linecache.cache[cell] = (len(source), None, source.splitlines(keepends=True), cell)
        return compile(ast.fix_missing_locations(tree), cell, "exec")

    def _reply(self, outcome: _Outcome, edits: list[SourceEdit]) -> tuple[dict[str, Any], list[bytes]]:
        text = self._output.text()
        new_files = self._saved.look()
        budget = Budget(
            n_images=self._limits.max_images, n_bytes=self._limits.reply_mb << 20, max_pixels=self._limits.max_pixels
        )
        images, notes = self._collect(choose_shown(new_files, text, self._names), budget)
        artefacts = [
            [self._saved.name_of(path)[:_MAX_NAME], size, notes.get(path, "")] for path, size in new_files.items()
        ]
        if self._figures.n_dropped:
            text += f"\n... [{self._figures.n_dropped} more figures not shown] ...\n"
        return self._fields(outcome, edits, text, images, artefacts), [image.data for image in images]

    def _collect(self, paths: list[str], budget: Budget) -> tuple[list[Pixels], dict[str, str]]:
        images, notes = [], dict[str, str]()
        for figure in self._figures.shown:
            try:
                budget.take(figure.width, figure.height)
                images.append(figure)
            except ValueError:
                self._figures.n_dropped += 1
        for path in paths:
            try:
                images.append(read_image(path, self._saved.name_of(path)[:_MAX_NAME], budget))
            except ValueError as error:
                notes[path] = str(error)
        return images, notes

    def _fields(
        self, outcome: _Outcome, edits: list[SourceEdit], text: str, images: list[Pixels], artefacts: list[Any]
    ) -> dict[str, Any]:
        return {
            "status": outcome.status,
            "text": self._shown(text),
            "error": None if outcome.error is None else self._shown(outcome.error),
            "edits": [list(edit) for edit in edits],
            "images": [[image.name, image.width, image.height] for image in images],
            "artefacts": artefacts,
        }

    def _shown(self, text: str) -> str:
        """The text without folders of the host, so that it says the same on every machine."""
        for real, shown in self._hidden:
            text = text.replace(real, shown)
        return text


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    cv2.setRNGSeed(seed & 0x7FFFFFFF)
    make_generator, streams = np.random.default_rng, np.random.SeedSequence(seed & 0xFFFFFFFF)

    def default_rng(seed: Any = None) -> np.random.Generator:
        return make_generator(streams.spawn(1)[0] if seed is None else seed)

    np.random.default_rng = default_rng  # without a seed it would take entropy from the kernel


def _moved_folders(work_folder: str, images: list[SharedImage]) -> dict[str, str]:
    """Folders of the full tier to where the lite tier has them; empty in the full tier."""
    folders = {WORK_FOLDER: work_folder}
    if images:
        folders[IMAGE_FOLDER] = os.path.dirname(images[0].decoded.path)
    return {shown: real for shown, real in folders.items() if shown != real}


def _hidden_prefixes(folders: dict[str, str]) -> list[tuple[str, str]]:
    libraries = {sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}
    libraries |= set(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    hidden = {path: "/usr" for path in libraries if not path.startswith("/usr")}
    hidden |= {real: shown for shown, real in folders.items()}
    return sorted(hidden.items(), key=lambda pair: -len(pair[0]))


def _move_home(folder: str) -> None:
    os.environ |= {"HOME": folder, "TMPDIR": f"{folder}/.tmp", "MPLCONFIGDIR": f"{folder}/.tmp"}
    tempfile.tempdir = None


class _Timer:
    """Interrupts the code once. `fired` stays true when the code swallowed it, as a finaliser does."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.fired = False

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._interrupt)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _interrupt(self, _number: int, _frame: object) -> None:
        self.fired = True
        raise _Interrupted


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (
        isinstance(error, cv2.error) and getattr(error, "code", 0) == _OPENCV_OUT_OF_MEMORY
    )


def _text_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return str(error.msg)
    try:
        return str(error).strip()[:_MAX_ERROR]
    except Exception:  # noqa: BLE001 - the code's own __str__
        return "<no text>"


def _line(error: BaseException, cell: str) -> str:
    if isinstance(error, SyntaxError) and error.filename == cell:
        return f" (line {error.lineno})"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == cell]
    return f" (line {lines[-1]})" if lines else ""


def _read(fd: int, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = os.read(fd, min(length - len(data), 1 << 20))
        if not part:
            os._exit(0)  # the host hung up
        data += part
    return bytes(data)


def _send(fd: int, nonce: int, fields: dict[str, Any], blobs: list[bytes]) -> None:
    payload = json.dumps(fields).encode()
    for part in (HEADER.pack(nonce, len(payload)) + payload, *blobs):
        view = memoryview(part)
        while view:
            view = view[os.write(fd, view) :]
