"""Methods of the user's own: each a Python file with ``method = …`` in a folder that ``DARKROOM_METHODS`` lists.

The file's name is the method's: ``methods/short.py`` is ``--method short``. docs/methods.md adds one.
"""

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.user_files import added_files, imported
from darkroom.train.rl.methods.base import Method
from darkroom.train.rl.settings import METHODS_VARIABLE, MethodDefaults
from darkroom.train.runs import TrainError

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def added_methods(taken: Collection[str]) -> dict[str, Path]:
    """The user's methods by name; none is imported yet.

    Raises ``TrainError`` for a missing folder, and for a name in ``taken``, given twice, or not in lower case.
    """
    files: dict[str, Path] = {}
    for path in added_files(METHODS_VARIABLE, TrainError):
        if not _NAME.fullmatch(path.stem):
            raise TrainError(f"{path}: a method is named in lower case after its file, like short.py; rename the file")
        if path.stem in taken or path.stem in files:
            other = files.get(path.stem, "a bundled one")
            raise TrainError(f"{path}: there is a method {path.stem!r} already ({other}); rename the file")
        files[path.stem] = path
    return files


def added_method(path: Path) -> Method:
    """The method that a file defines. Raises ``TrainError``, naming the file and what it lacks."""
    return _method_of(path, digest_bytes(path.read_bytes()))


@cache
def _method_of(path: Path, digest: str) -> Method:
    method = getattr(imported(path, TrainError), "method", None)
    if not isinstance(method, Method) or not hasattr(method, "__dataclass_fields__"):
        raise TrainError(
            f"{path}: expected a module-level `method = …`, a dataclass that extends "
            f"darkroom.train.rl.methods.base.Method; "
            f"found {method!r}"
        )
    if missing := [name for name in ("says", "protocol", "terms") if not hasattr(method, name)]:
        raise TrainError(f"{path}: {type(method).__name__} lacks {', '.join(missing)}")
    if method.protocol not in PROTOCOLS:
        raise TrainError(f"{path}: unknown protocol {method.protocol!r}; known: {', '.join(PROTOCOLS)}")
    terms: object = method.terms
    if not isinstance(terms, MethodDefaults):
        raise TrainError(f"{path}: terms are MethodDefaults(generations=…, learning_rate=…); found {terms!r}")
    if type(method).score is Method.score and type(method).score_one is Method.score_one:
        raise TrainError(f"{path}: {type(method).__name__} has neither score_one nor score")
    return method
