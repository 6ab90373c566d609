"""Names of images, folders, windows and older libraries that code expects which was written for another machine.

Each does what is meant where only one thing can be meant, and says so in a note; else the error lists what there is.
docs/sandbox_code.md has the list; `renamed.toml` has the names that libraries dropped, `edits` moves the folders.
"""

import ast
import errno
import glob
import os
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from darkroom.sandbox._guest.messages import CELL_PREFIX, IMAGE_FOLDER, note
from darkroom.sandbox._guest.patched_modules import EXPECTED, make_module, nothing, provide

FOLDERS = ("/mnt/data", "/content", "/output", "/outputs", "/kaggle/working", "/workspace", "/tmp")
"""Where code of other runtimes saves its files."""
_IMAGE, _PATH, _IMAGES, _PATHS = (EXPECTED[kind].split() for kind in ("image", "path", "images", "paths"))
_LENT = re.compile(rf"\b(?:{'|'.join((*_IMAGE, *_PATH, *_IMAGES, *_PATHS))})\b")
_COMMON_FILE = re.compile(
    r"(?:(?:input|test|original|uploaded|source|user|sample|my|the)[ _-]?)?"
    r"(?:image|img|photo|picture|pic|input)[ _-]?\d{0,3}\.(?:jpe?g|png|bmp|webp)",
    re.IGNORECASE,
)
_MAX_LISTED, _MAX_CHARS = 20, 1000
_list_folder = os.listdir
THERE = "there are"


def lent_names(nodes: Sequence[ast.AST], code: str, names: Mapping[str, Any], paths: list[str]) -> dict[str, Any]:
    """The task's images by the names that the code reads and that neither it nor the session gives to anything."""
    if not paths or not _LENT.search(code):
        return {}
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    used -= {*names, *_bound(nodes)}
    lent: dict[str, Any] = {name: [Image.open(path) for path in paths] for name in used.intersection(_IMAGES)}
    lent |= {name: list(paths) for name in used.intersection(_PATHS)}
    if len(paths) == 1:  # of several it could mean any
        lent |= {name: Image.open(paths[0]) for name in used.intersection(_IMAGE)}
        lent |= dict.fromkeys(used.intersection(_PATH), paths[0])
    for name in sorted(lent):
        note(f"{name} is not defined: here it is the task's image{'s' * isinstance(lent[name], list)}")
    return lent


def _bound(nodes: Iterable[ast.AST]) -> Iterable[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def found(file: Any, paths: list[str]) -> Any:
    """The file, or for a common name of an image that is not there the path of the task's only image. Raises
    FileNotFoundError for all others: code that catches and prints it shows what there is."""
    if not isinstance(file, str | os.PathLike) or os.path.exists(file):
        return file
    path, home = str(os.fspath(file)), os.environ.get("HOME", ".")
    if os.path.exists(saved := os.path.join(home, path)):  # the code has changed its folder
        return saved
    name = os.path.basename(path)
    if len(paths) != 1 or not _COMMON_FILE.fullmatch(name):
        told = f"{os.strerror(errno.ENOENT)} ({what_there_is(paths, home)})"
        raise FileNotFoundError(errno.ENOENT, told, file)
    note(f"there is no {name}: the task's image is opened")
    return paths[0]


def what_there_is(paths: list[str], work_folder: str) -> str:
    names = [f"image_path_{n} ({path})" for n, path in enumerate(paths)]
    with suppress(OSError):
        names += [name for name in sorted(_list_folder(work_folder)) if not name.startswith(".")]
    return f"{THERE} {listed(names) or 'no files'}"


def listed(names: Iterable[str]) -> str:
    """The first names, in a text of bounded length."""
    text = ", ".join(islice(names, _MAX_LISTED))
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"


def install(display: Any, *, has_images: bool) -> None:
    """Take the place of windows, of backends that need a screen, and of names that are gone."""

    def imshow(winname: Any, mat: Any) -> None:
        pixels = np.asarray(mat)
        if pixels.dtype.kind == "f":
            pixels = (pixels * 255).clip(0, 255).astype(np.uint8)
        display(Image.fromarray(pixels if pixels.ndim == 2 else cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)))

    def find(pathname: Any, *args: Any, **options: Any) -> list[Any]:
        if not (files := find_files(pathname, *args, **options)) and has_images:
            note(f"no file matches {pathname}: the task's images are in {IMAGE_FOLDER}")
        return files

    def list_folder(path: Any = ".") -> list[Any]:
        if (names := _list_folder(path)) == [".tmp"] and has_images:  # the working folder has it
            note(f"{path} is empty: the task's images are in {IMAGE_FOLDER}")
        return names

    def choose(*_: Any, **_options: Any) -> None:
        raise RuntimeError("there is no window to choose in: state points and boxes in pixels, such as x, y, w, h")

    find_files, glob.glob = glob.glob, find
    os.listdir = list_folder
    Image.register_save("JPG", Image.SAVE["JPEG"])
    Image.register_save("TIF", Image.SAVE["TIFF"])
    windows: dict[str, Any] = dict.fromkeys(EXPECTED["windows"].split(), nothing)
    windows |= dict.fromkeys(EXPECTED["answers"].split(), lambda *_, **_options: -1)
    windows |= {"imshow": imshow, "selectROI": choose, "selectROIs": choose}
    for name, function in windows.items():
        setattr(cv2, name, function)
    setattr(Figure, "ginput", choose)  # noqa: B010  # assigning a method is not typed
    matplotlib.use = plt.switch_backend = nothing  # Agg draws all that is shown or saved
    provide("google", {}, colab={"patches": make_module("google.colab.patches", {"cv2_imshow": partial(imshow, None)})})
    styles = plt.style.library
    styles |= {name.replace("-v0_8", ""): style for name, style in styles.items()}
    for module, renamed in tomllib.loads(Path(__file__).with_name("renamed.toml").read_text("utf-8")).items():
        if module in sys.modules:
            _lend(sys.modules[module], renamed)
    setattr(FigureCanvasAgg, "tostring_rgb", _rgb_of)  # noqa: B010
    setattr(ImageDraw.ImageDraw, "textsize", _text_size)  # noqa: B010
    setattr(ImageDraw.ImageDraw, "multiline_textsize", _text_size)  # noqa: B010
    setattr(ImageFont.FreeTypeFont, "getsize", _size_in_font)  # noqa: B010


def _lend(module: Any, renamed: Mapping[str, str]) -> None:
    """Make the module find these names for the model's code, by its `__getattr__`, as libraries do it."""
    others = getattr(module, "__getattr__", None)

    def get(name: str) -> Any:
        if name in renamed and sys._getframe(1).f_code.co_filename.startswith(CELL_PREFIX):
            note(f"{module.__name__}.{name} is now {renamed[name].removeprefix('builtins.')}")
            return pkgutil.resolve_name(renamed[name])
        if others is None:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return others(name)

    module.__getattr__ = get


def _rgb_of(canvas: Any) -> bytes:
    note("FigureCanvasAgg.tostring_rgb is gone: buffer_rgba has the pixels")
    return np.asarray(canvas.buffer_rgba())[..., :3].tobytes()


def _text_size(draw: Any, text: Any, font: Any = None, *_: Any, **options: Any) -> tuple[int, int]:
    note("ImageDraw.textsize is gone: textbbox measures a text")
    left, top, right, bottom = draw.textbbox((0, 0), text, font, **options)
    return round(right - left), round(bottom - top)


def _size_in_font(font: Any, text: Any, *_: Any, **options: Any) -> tuple[int, ...]:
    note("ImageFont.getsize is gone: getbbox measures a text")
    return tuple(map(round, font.getbbox(text, **options)[2:]))
