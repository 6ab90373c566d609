"""Runs one call after another in the locked session, in one namespace that lives as long as the session.

Everything that it says is untrusted by the host: the code runs in this very process and can change any of it.
"""

import ast
import asyncio
import builtins
import gc
import inspect
import io
import json
import os
import sys
import tempfile
import types
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, cast

from PIL import Image

from darkroom.sandbox._guest import between_calls, elsewhere, errors, fonts, one_process, patched_modules
from darkroom.sandbox._guest.boxes import Repairs
from darkroom.sandbox._guest.differences import rows_of
from darkroom.sandbox._guest.edits import SourceEdit, move_paths, parse_repaired
from darkroom.sandbox._guest.elsewhere import FOLDERS, lent_names
from darkroom.sandbox._guest.messages import (
    CELL_PREFIX,
    IMAGE_FOLDER,
    WORK_FOLDER,
    RepairMode,
    ScanMode,
    next_frame,
    send,
)
from darkroom.sandbox._guest.notebook import SHOWN, show_last_value
from darkroom.sandbox._guest.output import Output
from darkroom.sandbox._guest.scan import Blocked, refuse_dangerous_calls
from darkroom.sandbox._guest.shared import NAMES_IMAGES, Inputs, hook_readers, opened, paths_of
from darkroom.sandbox._guest.shown_images import (
    Budget,
    OverLimit,
    Pixels,
    SavedFiles,
    ShownImages,
    held_paths,
    newly_held,
    read_image,
)
from darkroom.sandbox._guest.video import install_decord_alias, names_of_videos
from darkroom.sandbox.limits import EchoMode, Limits

_MAX_NAME, _MAX_ERROR = 200, 4000


class _Outcome(NamedTuple):
    status: str
    error: str | None = None


class Runner:
    """Prepared once in the group, before any session is forked: what is touched there stays shared among them.

    The group itself runs nothing that a model or a data set wrote: it opens no image and reads no code.
    """

    def __init__(self, limits: Limits, inputs: Inputs, *, scan: ScanMode, repair: RepairMode, echo: EchoMode) -> None:
        self.limits, self._inputs, self._scan, self._is_repaired = limits, inputs, scan, repair != "off"
        self._echo = echo
        self._output = Output(limits.output_chars)
        self._images = ShownImages(inputs.links, max_images=limits.max_images, max_pixels=limits.max_pixels)
        self._repairs, self._addresses = Repairs(enabled=self._is_repaired), patched_modules.Addresses()
        self._has_opened = False
        self._install()
        self._baseline = between_calls.Baseline()
        self._names = self._namespace()
        self._settle(WORK_FOLDER)
        # go the way of a call once: what is written before the fork is not written anew in every session
        patched_modules.use_pillow()  # the hooks have emptied Python's caches of methods
        self._answer("pass")

    def begin(self, work_folder: str) -> None:
        """Set up what a session must not share with its siblings."""
        self._settle(work_folder)
        self._inputs.links.make()
        if work_folder != WORK_FOLDER:
            patched_modules.install_copy()
        os.environ |= {"HOME": work_folder, "TMPDIR": f"{work_folder}/.tmp", "MPLCONFIGDIR": f"{work_folder}/.tmp"}
        tempfile.tempdir = None
        sys.stdin = io.StringIO("")
        self._output.open()
        self._baseline.set()
        gc.enable()

    def serve(self, fd: int, nonce: int, window: "memoryview[int]") -> NoReturn:
        """Answer calls until the host hangs up or kills; the images' pixels go into the window."""
        send(fd, nonce, {"ready": True})
        patched_modules.seed_everything(json.loads(next_frame(fd)[1])["seed"])
        answer = self._answer  # as it is now, whatever code makes of the class
        while True:
            nonce, code = next_frame(fd)
            reply, pixels = answer(code.decode("utf-8", "surrogatepass"))
            start = 0
            for data in pixels:
                window[start : (start := start + len(data))] = data
            send(fd, nonce, reply)

    def _settle(self, work_folder: str) -> None:
        self._saved = SavedFiles(work_folder)
        self._work_folder, self._paths = work_folder, [image.decoded.path for image in self._inputs.images]
        places = {WORK_FOLDER: work_folder, IMAGE_FOLDER: IMAGE_FOLDER}
        if paths := [*self._paths, *self._inputs.video_paths]:
            places[IMAGE_FOLDER] = os.path.dirname(paths[0])
        moved = {folder: real for folder, real in places.items() if folder != real}  # in the lite tier
        self._folders = places | dict.fromkeys(FOLDERS, work_folder) if self._is_repaired else moved
        self._inputs.links.settle(work_folder)
        libraries = {sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), os.path.realpath(sys.base_prefix)}
        libraries |= set(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
        hidden = {path: "/usr" for path in libraries if not path.startswith("/usr")}
        hidden |= {real: folder for folder, real in (moved | self._inputs.links.moved).items()}
        self._hidden = sorted(hidden.items(), key=lambda pair: -len(pair[0]))
        self._n_calls = 0

    def _install(self) -> None:
        Image.MAX_IMAGE_PIXELS = self.limits.max_pixels
        hook_readers(self._inputs)
        self._images.install()
        setattr(builtins, SHOWN, self._images.show_value)
        fonts.install()
        elsewhere.install(self._images.display, has_images=bool(self._inputs.images))
        self._repairs.install()
        patched_modules.install_sqlite()
        patched_modules.install_pipe()
        patched_modules.install_fast_png()
        patched_modules.install_notebook_modules(self._images.display)
        one_process.install()
        if self._inputs.video_paths:
            install_decord_alias()

    def _namespace(self) -> dict[str, Any]:
        main = sys.modules["__main__"] = types.ModuleType("__main__")  # pickle and dataclasses look classes up there
        names = vars(main)
        names |= {"__builtins__": builtins, "display": self._images.display, **patched_modules.PREPARED}
        names |= paths_of(self._inputs.images)
        names |= names_of_videos(self._inputs.video_paths, max_pixels=self.limits.max_pixels)
        return names

    def _answer(self, code: str) -> tuple[dict[str, Any], list[bytes]]:
        self._late = between_calls.outlived()
        self._output.begin(self._late)
        self._images.clear()
        self._repairs.begin()
        edits: list[SourceEdit] = []
        cell = f"{CELL_PREFIX} {self._n_calls}>"
        self._n_calls += 1
        if not self._has_opened and NAMES_IMAGES.search(code):
            # only now: to open an image costs a session more memory than its own start
            self._has_opened = True
            self._names |= opened(self._inputs.images)
        held, outcome = held_paths(self._names), self._execute(code, cell, edits)
        edit_rows = rows_of(code, edits + self._repairs.edits)
        try:
            return self._reply(outcome, edit_rows, held)
        except MemoryError:
            self._images.clear()
            too_large = _Outcome("memory", "MemoryError: not enough memory to return the images")
            return self._fields(too_large, edit_rows, self._output.text(), [], []), []
        finally:
            self._output.forget()

    def _execute(self, code: str, cell: str, edits: list[SourceEdit]) -> _Outcome:
        interruption = errors.Interruption()
        try:
            with interruption:
                try:
                    # in one dict, so that functions see the code's globals; with `await` at its top level, in a loop
                    if inspect.iscoroutine(result := eval(self._compile(code, cell, edits), self._names)):
                        asyncio.run(result)
                    between_calls.wait_for_threads(self._late)
                    if self._echo == "last":
                        self._images.show_unshown()
                except BaseException:
                    if self._echo == "last":
                        self._images.forget_figures()
                    raise
                finally:
                    self._baseline.restore(code)
                    self._output.flush()
        except errors.Interrupted as error:
            return self._timeout(errors.line_of(error, cell))
        except Blocked as error:
            return _Outcome("blocked", f"PermissionError: {error}")
        except SystemExit as error:
            is_fine = error.code in (None, 0)
            return _Outcome("ok") if is_fine else _Outcome("error", f"SystemExit: {errors.text_of(error)}")
        except BaseException as error:  # noqa: BLE001 - the code may raise anything
            status = "memory" if errors.is_out_of_memory(error) else "error"
            return _Outcome(status, (told := errors.describe(error, cell)) + self._remedy(error, told))
        return self._timeout("") if interruption.fired else _Outcome("ok")

    def _remedy(self, error: BaseException, told: str) -> str:
        with suppress(Exception):  # what the error says may be the code's own
            if self._is_repaired:
                return errors.remedy(error, told, self._names, self._paths, self._work_folder)
        return ""

    def _timeout(self, line: str) -> _Outcome:
        return _Outcome("timeout", f"TimeoutError: still running after {self.limits.seconds:g} s{line}")

    def _compile(self, code: str, cell: str, edits: list[SourceEdit]) -> types.CodeType:
        errors.remember_lines(cell, code)
        tree, repairs = parse_repaired(code, cell, enabled=self._is_repaired)
        edits += repairs
        source = repairs[-1].after if repairs else code
        errors.remember_lines(cell, source)
        nodes = [*ast.walk(tree)]  # which is slower than what is done with each
        refuse_dangerous_calls(nodes, self._scan)
        if self._is_repaired:
            self._names |= lent_names(nodes, source, self._names, self._paths)
        if self._echo == "last":
            show_last_value(tree, source)
        self._repairs.instrument(tree)
        edits += move_paths(nodes, code, self._folders, self._inputs.links)
        return cast(types.CodeType, compile(tree, cell, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))

    def _reply(
        self, outcome: _Outcome, edit_rows: list[Any], held: dict[str, tuple[str, ...]]
    ) -> tuple[dict[str, Any], list[bytes]]:
        text = self._output.text()
        new_files = self._saved.look(self._images.written)
        items = self._images.ordered(new_files, newly_held(held, held_paths(self._names)))
        images, notes, n_over_limit = self._collect(items)
        listed = list(new_files.items())[: self.limits.files]  # the lite tier has no quota that stops at this number
        artefacts = [[self._name_of(path), size, self._cleaned(notes.get(path, ""))] for path, size in listed]
        if len(new_files) > len(listed):
            text += f"\n... [{len(new_files) - len(listed)} more files not listed] ...\n"
        if self._images.n_dropped:
            text += f"\n... [{self._images.n_dropped} more figures not shown] ...\n"
        fields = self._fields(outcome, edit_rows, text, images, artefacts)
        n_over_limit += self._images.n_dropped
        return fields | {"n_over_limit": n_over_limit}, [image.data for image in images]

    def _collect(self, items: list[Pixels | str]) -> tuple[list[Pixels], dict[str, str], int]:
        """Images within the limits, once each; why the other files are not shown, and how many a limit keeps back."""
        budget = Budget(self.limits.max_images, self.limits.reply_mb << 20, self.limits.max_pixels)
        images, notes, n_over_limit = list[Pixels](), dict[str, str](), 0
        for item in items:
            try:
                image = read_image(item, self._name_of(item), budget) if isinstance(item, str) else item
                budget.check(image.width, image.height)
            except ValueError as error:
                if isinstance(item, str):
                    notes[item] = str(error)
                    n_over_limit += isinstance(error, OverLimit)
                else:
                    self._images.n_dropped += 1
                continue
            # all but the name is the same; a digest would cost more
            first = next((earlier for earlier in images if earlier[1:] == image[1:]), None)
            if first is None:
                images.append(image)
                budget.take(image.width, image.height)
            elif isinstance(item, str):
                notes[item] = f"shown already, as {first.name}"
        return images, notes, n_over_limit

    def _name_of(self, path: str) -> str:
        return self._cleaned(self._saved.name_of(path))[:_MAX_NAME]

    def _fields(
        self, outcome: _Outcome, edit_rows: list[Any], text: str, images: list[Pixels], artefacts: list[Any]
    ) -> dict[str, Any]:
        return {
            "status": outcome.status,
            "text": self._cleaned(text),
            "error": None if outcome.error is None else self._cleaned(outcome.error)[:_MAX_ERROR],
            "edits": edit_rows,
            "images": [[image.name, image.width, image.height] for image in images],
            "artefacts": artefacts,
        }

    def _cleaned(self, text: str) -> str:
        """The text without folders of the host and without addresses: it says the same on every machine."""
        for real, replacement in self._hidden:
            text = text.replace(real, replacement)
        return self._addresses.settle(text)
