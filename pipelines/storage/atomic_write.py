"""Atomic file and folder writes: a reader finds the previous content or the new one, never a part of it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from pipelines.storage.storage_errors import storage_errors


def write_whole(path: Path, content: bytes | str, *, mode: int = 0o644) -> None:
    """Writes ``content`` (text as UTF-8) with the permissions ``mode``, less the umask; makes the folder."""
    with whole_file(path) as part, open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to: it replaces ``path`` at the end, and is deleted if the block raises.

    Raises ``StorageError`` when the disk is full, read-only or not ours.
    """
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    with storage_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def replace_folder(folder: Path, part: Path) -> None:
    """Puts ``part`` in the place of ``folder``, whose previous content is deleted; both are on one file system."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(part, folder)
    shutil.rmtree(old, ignore_errors=True)
