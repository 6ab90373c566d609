"""What `import` finds: Python's own modules, the libraries that the host allows, and files of the code's own.

    import torch
    ModuleNotFoundError: No module named 'torch' in the sandbox, which has numpy, PIL, cv2, …

Other libraries of the environment are as if they were not installed, for the allowed ones, too: some do another thing
where an optional one is there. This is order and no protection: the files can be read.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from types import ModuleType

_NO_NETWORK = "there is no network; work with the images of the task and with what the code computes"
_NO_READER = "there is no text recognition; crop and enlarge the text, show it and read it in the image"
INSTEAD = {
    **dict.fromkeys(("requests", "httpx", "aiohttp", "urllib3", "bs4", "selenium", "gdown", "wget"), _NO_NETWORK),
    **dict.fromkeys(("pytesseract", "easyocr", "paddleocr", "tesserocr", "keras_ocr", "doctr"), _NO_READER),
}
"""Libraries that models often try, and what to do without them."""


class LibraryFinder:
    """Takes the place of Python's finder for files."""

    def __init__(self, told: Sequence[str], allowed: Iterable[str]) -> None:
        self._told = ", ".join(told)
        self._allowed = {*allowed, *sys.stdlib_module_names}
        pythons_own = os.path.dirname(os.__file__)
        self._folders = {*sys.path, *map(os.path.realpath, sys.path)} - {pythons_own, f"{pythons_own}/lib-dynload"}

    def install(self) -> None:
        sys.meta_path[:] = [BuiltinImporter, FrozenImporter, self]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if path is not None or name in self._allowed or (spec is not None and not self._is_of_a_library(spec)):
            return spec
        caller = sys._getframe(1).f_back
        if caller is None or caller.f_code.co_name != "_find_and_load_unlocked":
            return None  # `importlib.util.find_spec` asks whether there is such a module
        instead = f": {INSTEAD[name]}" if name in INSTEAD else f", which has {self._told}"
        raise ModuleNotFoundError(f"No module named {name!r} in the sandbox{instead}", name=name)

    def invalidate_caches(self) -> None:
        PathFinder.invalidate_caches()

    def _is_of_a_library(self, spec: ModuleSpec) -> bool:
        places = list(spec.submodule_search_locations or [spec.origin or ""])
        return any(os.path.dirname(place) in self._folders for place in places)
