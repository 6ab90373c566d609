"""Files that users write: their errors in settings, and code that they add, as packages' entry points or in folders
that an environment variable lists, separated as in ``PATH``; files that begin with ``_`` are left out."""

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from pydantic import ValidationError

from darkroom.pipelines.records.digest import digest_bytes
from darkroom.sandbox.errors import UserError

_FORMER_NAMES = frozenset({"annotation", "assets", "pipelines", "sandbox", "train"})
"""Of the packages, before they were ``darkroom.annotation`` and so on."""


@contextmanager
def config_errors(path: Any, error: type[Exception], *, remedy: str = "") -> Iterator[None]:
    """Raise ``error``, which names the file ``path`` and the field, for settings in YAML or JSON that cannot be read.
    ``remedy``: what to do, after what is wrong in the file."""
    try:
        yield
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror}") from cause
    except ValidationError as cause:
        raise error(f"{path}: {field_errors(cause)}{remedy}") from cause
    except (yaml.YAMLError, ValueError) as cause:
        raise error(f"{path} is not {'JSON' if path.suffix == '.json' else 'YAML'}: {cause}{remedy}") from cause


def field_errors(error: ValidationError, most: int | None = None) -> str:
    """The errors by field, on one line; at most ``most`` of them."""
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:most])


def added_files(variable: str, error: type[Exception]) -> list[Path]:
    """In the order of the folders, then by name. Raises ``error`` for a folder that does not exist."""
    folders = [Path(folder) for folder in os.environ.get(variable, "").split(os.pathsep) if folder]
    if missing := next((folder for folder in folders if not folder.is_dir()), None):
        raise error(f"{variable} names {missing}, which is not a folder")
    return [path for folder in folders for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")]


def imported(path: Path, error: type[Exception]) -> ModuleType:
    """The file as a module of its own. Raises ``error`` in one line where the file fails."""
    name = f"darkroom_added_{path.stem}_{digest_bytes(str(path.resolve()).encode())[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise error(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic look types up there
    with code_errors(path, error, "cannot be imported"):
        spec.loader.exec_module(module)
    return module


@contextmanager
def code_errors(path: Path, error: type[Exception], failed: str) -> Iterator[None]:
    """Raise ``error`` in one line, which names the file, its line and what ``failed``, where its code raises within."""
    try:
        yield
    except (error, UserError):
        raise
    except Exception as cause:
        lines = [frame.lineno for frame in traceback.extract_tb(cause.__traceback__) if frame.filename == str(path)]
        at = f", line {lines[-1]}," if lines else ""
        raise error(f"{path}{at} {failed}: {one_line(cause)}") from cause


def loaded(entry: EntryPoint, error: type[Exception]) -> Any:
    """The object that a package registers as ``entry``. Raises ``error`` in one line where it cannot be imported."""
    try:
        return entry.load()
    except Exception as cause:
        raise error(f"{entry.name} ({entry.value}) cannot be imported: {one_line(cause)}") from cause


def one_line(cause: Exception) -> str:
    """The kind of an error and its message."""
    words = f"{type(cause).__name__}: {' '.join(str(cause).split())}"
    if isinstance(cause, ImportError) and cause.name and cause.name.split(".")[0] in _FORMER_NAMES:
        return f"{words}. To do: Darkroom's packages are imported below its name, as in `darkroom.{cause.name}`"
    return words
