"""Modules that the code imports: used once ahead, absent ones provided, slow ones replaced, random choices seeded.

What a session would build anew at its first use is paid once, before the fork (`import_libraries`). IPython's display
and tqdm give way to the packages where the host allows these; `tqdm` shows no bar: it would fill the observation.
docs/sandbox.md says which random choices follow from the session's seed, and which do not.
"""

import builtins
import errno
import importlib
import importlib.util
import io
import os
import random
import re
import shutil
import socket
import sqlite3
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from importlib.machinery import ModuleSpec
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import autopep8
import cv2
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from darkroom.sandbox._guest.notebook import Notebook

EXPECTED: dict[str, str] = tomllib.loads(Path(__file__).with_name("expected.toml").read_text("utf-8"))
PREPARED: dict[str, Any] = {"np": np, "plt": plt, "Image": Image, "get_ipython": Notebook}
PREPARED |= {name: importlib.import_module(name) for name in EXPECTED["given"].split()}
"""The modules that the code finds without importing them."""


def import_libraries() -> None:
    for name in EXPECTED["imported"].split():
        if not name.startswith("skimage.") or importlib.util.find_spec("skimage"):  # an extra brings it
            importlib.import_module(name)
    np.random.seed(0)
    np.random.default_rng(0).random(3)
    np.linalg.svd(np.eye(3))
    cv2.setNumThreads(1)
    cv2.setRNGSeed(0)
    black = np.zeros((64, 64, 3), np.uint8)
    for suffix in (".jpg", ".png"):
        cv2.imdecode(cv2.imencode(suffix, black)[1], cv2.IMREAD_COLOR)
    cv2.resize(black, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    cv2.cvtColor(black, cv2.COLOR_BGR2GRAY)
    use_pillow()
    plt.figure(figsize=(1, 1))
    plt.plot([0, 1])
    plt.title("warm")
    plt.gcf().canvas.draw()
    plt.close("all")
    autopep8.fix_code("if 1:\n   x=1\n")


def use_pillow() -> None:
    Image.init()
    file = io.BytesIO()
    Image.new("RGB", (16, 16)).save(file, "JPEG")
    Image.open(file).load()


_NO_NETWORK = "the sandbox has no network: work with the images of the task and with what the code computes"
_NO_INPUT = "the sandbox has no one to answer input(): write the value into the code"


def install_notebook_modules(display: Callable[..., None]) -> None:
    """Provide IPython and tqdm. `display` shows images and figures and prints anything else."""
    names: dict[str, Any] = dict.fromkeys(("HTML", "Markdown", "Latex", "Math", "Code", "Pretty", "JSON"), _Text)
    names |= {"display": display, "update_display": display, "clear_output": nothing, "Image": _image_of}
    provide("IPython", {"get_ipython": Notebook, "version_info": (9, 0, 0, "")}, display=names)
    bars = {"tqdm": Bar, "trange": lambda *ends, **options: Bar(range(*ends), **options), "tqdm_notebook": Bar}
    provide("tqdm", bars, auto=bars, notebook=bars, std=bars, autonotebook=bars)
    _explain_input()
    _explain_network()


def nothing(*_: Any, **_options: Any) -> None:
    pass


class Bar(AbstractContextManager["Bar", None]):
    """A progress bar that shows nothing: iterates, and takes every method that sets something."""

    def __init__(
        self, iterable: Iterable[Any] | None = None, *_: Any, total: int | None = None, **_options: Any
    ) -> None:
        self.iterable, self.total, self.n = iterable, total, 0

    def __iter__(self) -> Iterator[Any]:
        for item in self.iterable or ():
            yield item
            self.n += 1

    def __len__(self) -> int:
        return self.total if self.total is not None else len(self.iterable)  # type: ignore[arg-type]  # as tqdm's

    def update(self, n: int = 1) -> None:
        self.n += n

    @staticmethod
    def write(text: str, file: Any = None, end: str = "\n", **_: Any) -> None:
        print(text, file=file, end=end)

    __exit__ = nothing
    set_description = set_description_str = set_postfix = set_postfix_str = refresh = reset = clear = close = nothing


class _Text:
    """A text that a notebook would render: printed as it is."""

    def __init__(self, data: Any = None, *_: Any, **_options: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        return str(self.data)


def _image_of(data: Any = None, url: Any = None, filename: Any = None, **_: Any) -> Image.Image:
    """Open with Pillow the image that IPython's Image shows."""
    if data is None and filename is None:
        raise OSError(errno.ENETUNREACH, f"{url!r}: {_NO_NETWORK}")
    source = filename if data is None else data
    if isinstance(source, Image.Image):
        return source
    return Image.open(io.BytesIO(source) if type(source) is bytes else source)


def provide(name: str, names: dict[str, Any], **submodules: dict[str, Any]) -> None:
    if name in sys.modules or importlib.util.find_spec(name):
        return
    package = make_module(name, {**names, "__path__": []})
    for submodule, contents in submodules.items():
        vars(package).setdefault(submodule, make_module(f"{name}.{submodule}", contents))


def make_module(name: str, names: dict[str, Any]) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(names, __spec__=ModuleSpec(name, None))  # without a spec `find_spec` would raise
    return module


def _explain_input() -> None:
    plain_input = builtins.input

    def input(prompt: object = "", /) -> str:
        try:
            return plain_input(prompt)
        except EOFError:
            raise EOFError(_NO_INPUT) from None

    builtins.input = input


def _explain_network() -> None:
    """The filter refuses it in any case: this says why, and at once, where a name would be looked up."""
    make_socket: Any = socket.socket.__init__

    def make(self: Any, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> None:
        try:
            make_socket(self, family, type, proto, fileno)
        except PermissionError as error:
            raise PermissionError(error.errno, _NO_NETWORK) from None

    def look_up(*_: Any, **_options: Any) -> Any:
        raise socket.gaierror(socket.EAI_FAIL, _NO_NETWORK)

    setattr(socket.socket, "__init__", make)  # noqa: B010  # assigning a method is not typed
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"):
        setattr(socket, name, look_up)


def install_pipe() -> None:
    """Make `os.pipe` of a pair of sockets: the buffers of pipes are one budget for all processes of a user."""

    def pipe() -> tuple[int, int]:
        reading, writing = socket.socketpair()
        reading.shutdown(socket.SHUT_WR)
        return reading.detach(), writing.detach()

    def pipe2(flags: int) -> tuple[int, int]:
        fds = pipe()
        for fd in fds:
            os.set_blocking(fd, not flags & os.O_NONBLOCK)
        return fds

    os.pipe, os.pipe2 = pipe, pipe2


def install_copy() -> None:
    """`shutil.copy` and `copytree` without modes and times, for the lite tier, where both are the host's."""
    shutil.copymode = shutil.copystat = nothing


def install_fast_png() -> None:
    """zlib's fastest for code that names no level: the same pixels in a third of the time. Once per process."""
    write = Image.SAVE["PNG"]

    def write_fast(image: Any, *args: Any, **options: Any) -> None:
        image.encoderinfo.setdefault("compress_level", 1)
        write(image, *args, **options)

    Image.register_save("PNG", write_fast)


_POSITION_OF_URI = 6


def install_sqlite() -> None:
    """Make `sqlite3.connect` do without file locks, which the filter refuses."""
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect_without_locks(database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
        is_file = isinstance(database, str | bytes | os.PathLike) and os.fsdecode(database) not in ("", ":memory:")
        if options.get("uri") or len(args) > _POSITION_OF_URI or not is_file:
            return connect(database, *args, **options)
        uri = f"file:{quote(os.path.abspath(os.fsdecode(database)))}?nolock=1"
        return connect(uri, *args, uri=True, **{name: value for name, value in options.items() if name != "uri"})

    sqlite3.connect = sqlite3.dbapi2.connect = connect_without_locks  # type: ignore[assignment]  # overloads


def seed_everything(seed: int) -> None:
    """Any integer; the libraries that take fewer bits get its lowest."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    cv2.setRNGSeed(seed & 0x7FFFFFFF)
    make_generator, streams = np.random.default_rng, np.random.SeedSequence(seed & 0xFFFFFFFF)

    def default_rng(seed: Any = None) -> np.random.Generator:
        return make_generator(streams.spawn(1)[0] if seed is None else seed)

    np.random.default_rng = default_rng
    os.urandom = random.Random(f"bytes {seed}").randbytes
    setattr(random, "_urandom", os.urandom)  # noqa: B010  # SystemRandom's own name for it
    names: Any = tempfile._RandomNameSequence()  # type: ignore[attr-defined]  # its own generator takes kernel entropy
    names._rng, names._rng_pid = random.Random(f"names {seed}"), os.getpid()
    setattr(tempfile, "_name_sequence", names)  # noqa: B010


_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]{8,16}\b")
_FIRST_ADDRESS = 0x7F0000000010
_ADDRESS_STEP = 0x10


class Addresses:
    """Replaces addresses, which differ from run to run: `<… object at 0x7f3a5c0d1e50>`, the first of a session, becomes
    `<… object at 0x7f0000000010>`, the next one ends in 20, and the same is always the same."""

    def __init__(self) -> None:
        self._settled = defaultdict[int, str](map(hex, count(_FIRST_ADDRESS, _ADDRESS_STEP)).__next__)

    def settle(self, text: str) -> str:
        return _ADDRESS.sub(lambda match: self._settled[int(match[0], 16)], text) if "at 0x" in text else text
