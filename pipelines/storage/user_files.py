"""Python files that a user adds: every ``*.py`` of the folders that an environment variable lists, imported by path.

Folders are separated as in ``PATH``; files that begin with ``_`` are left out.
"""

import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from darkroom.pipelines.records.digest import digest_bytes


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
    try:
        spec.loader.exec_module(module)
    except error:
        raise
    except Exception as cause:
        lines = [frame.lineno for frame in traceback.extract_tb(cause.__traceback__) if frame.filename == str(path)]
        at = f", line {lines[-1]}," if lines else ""
        raise error(f"{path}{at} cannot be imported: {type(cause).__name__}: {' '.join(str(cause).split())}") from cause
    return module
