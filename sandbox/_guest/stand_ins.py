"""What code of a notebook expects to find: IPython's display and tqdm; and words for what the sandbox lacks.

`tqdm` shows no bar: it would fill the observation. Both give way to the packages where the host allows these.
"""

import builtins
import errno
import importlib.util
import io
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from PIL import Image

_NO_NETWORK = "the sandbox has no network: work with the images of the task and with what the code computes"
_NO_INPUT = "the sandbox has no one to answer input(): write the value into the code"


def install_stand_ins(display: Callable[..., None]) -> None:
    """`display` shows images and figures and prints anything else."""
    shown: dict[str, Any] = {
        "display": display,
        "Image": _image_of,
        "clear_output": _nothing,
        "update_display": display,
    }
    shown |= dict.fromkeys(("HTML", "Markdown", "Latex", "Math", "Code", "Pretty", "JSON"), _Text)
    _provide("IPython", {"get_ipython": _nothing, "version_info": (9, 0, 0, "")}, display=shown)
    bars = {"tqdm": Bar, "trange": _range, "tqdm_notebook": Bar}
    _provide("tqdm", bars, auto=bars, notebook=bars, std=bars, autonotebook=bars)
    _explain_input()
    _explain_network()


class Bar:
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

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, n: int = 1) -> None:
        self.n += n

    @staticmethod
    def write(text: str, file: Any = None, end: str = "\n", **_: Any) -> None:
        print(text, file=file, end=end)

    def _set(self, *_: Any, **_options: Any) -> None:
        pass

    set_description = set_description_str = set_postfix = set_postfix_str = refresh = reset = clear = close = _set


def _range(*arguments: int, **options: Any) -> Bar:
    return Bar(range(*arguments), **options)


class _Text:
    """A text that a notebook would render: printed as it is."""

    def __init__(self, data: Any = None, *_: Any, **_options: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        return str(self.data)


def _image_of(data: Any = None, url: Any = None, filename: Any = None, **_: Any) -> Image.Image:
    """What IPython's Image shows, opened with Pillow."""
    if data is None and filename is None:
        raise OSError(errno.ENETUNREACH, f"{url!r}: {_NO_NETWORK}")
    source = filename if data is None else data
    if isinstance(source, Image.Image):
        return source
    return Image.open(io.BytesIO(source) if type(source) is bytes else source)


def _nothing(*_: Any, **_options: Any) -> None:
    pass


def _provide(name: str, names: dict[str, Any], **submodules: dict[str, Any]) -> None:
    if name in sys.modules or importlib.util.find_spec(name):
        return
    package = _module(name, {**names, "__path__": []})
    for submodule, contents in submodules.items():
        vars(package).setdefault(submodule, _module(f"{name}.{submodule}", contents))


def _module(name: str, names: dict[str, Any]) -> ModuleType:
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
