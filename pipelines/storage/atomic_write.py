"""Atomic file and folder writes: a reader finds the previous content or the new one, never a part of it. In an object
store an upload is seen whole or not at all; a folder there is whole when it has its marker. Folders of a store are
copied to local ones for training, and its reports are copied back."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from upath import UPath

from darkroom.pipelines.storage.storage_errors import storage_errors
from darkroom.pipelines.storage.store_paths import (
    StorePath,
    children,
    content,
    read_at_once,
    remove,
    remove_file,
    upload,
)

MARKER = ".darkroom.json"
"""The file that is written last into a folder. Hidden: `datasets` must not take it for data."""
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP})
"""Of a file system that has none, as Lustre's may be mounted."""


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Lock the file ``lock``, where its file system has locks; a killed process frees it. Raises ``StorageError``."""
    with storage_errors(str(lock.parent)):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield


def write_whole(path: StorePath, content: bytes | str, *, mode: int = 0o644) -> None:
    """Writes ``content`` (text as UTF-8) with the permissions ``mode``, less the umask; makes the folder."""
    with whole_file(path) as part, open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: StorePath) -> Iterator[Path]:
    """A local file to write to: it replaces ``path`` at the end, and is deleted if the block raises. Raises
    ``StorageError`` when the disk is full, read-only or not ours, or the store cannot be used."""
    if not isinstance(path, Path):
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / path.name
            yield part
            upload(part, path)
        return
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    with storage_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def replace_folder(folder: StorePath, part: Path) -> None:
    """Puts ``part`` in the place of ``folder``, whose content is deleted: locally by a rename on one file system. In a
    store the marker of completion is deleted first and uploaded last; in between the folder is incomplete."""
    if not isinstance(folder, Path):
        upload_folder(folder, part)
        shutil.rmtree(part)
        return
    with storage_errors(str(folder)):
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            os.replace(folder, old)
        os.replace(part, folder)
        shutil.rmtree(old, ignore_errors=True)


def remove_folder(folder: StorePath) -> None:
    """Deletes a folder, if it is there; in an object store its marker first."""
    if not isinstance(folder, Path):
        remove_file(folder / MARKER)
    remove(folder)


def upload_folder(folder: UPath, part: Path) -> None:
    """The files of ``part`` in the place of those of ``folder``, the marker last. Raises ``StorageError``."""
    files = sorted((path for path in part.rglob("*") if path.is_file()), key=lambda path: path.name == MARKER)
    names = [path.relative_to(part).as_posix() for path in files]
    remove_folder(folder)
    for path, name in zip(files, names, strict=True):
        upload(path, folder / name)


def local_copy(folder: StorePath, to: Path) -> Path:
    """A local folder with the complete datasets at or below ``folder``: itself, or ``to``, where what is unchanged is
    kept and all else is deleted. Of processes that want one at the same time (to train on many GPUs) one makes it."""
    if isinstance(folder, Path):
        return folder
    with storage_errors(str(folder)):
        if content(folder / MARKER) is None:
            return _local_copies(folder, to)
        with one_at_a_time(to.with_name(f".{to.name}.lock")):
            if content(to / MARKER) != read_at_once(folder.fs, (folder / MARKER).path):
                part = to.with_name(f".{to.name}.part")
                shutil.rmtree(part, ignore_errors=True)
                folder.fs.get(folder.path.rstrip("/") + "/", f"{part}/", recursive=True)
                replace_folder(to, part)
    return to


def share_folder(folder: Path, to: StorePath) -> None:
    """Copies or uploads a folder, unless it lies where it is to be. Raises ``StorageError``."""
    if not isinstance(to, Path):
        upload_folder(to, folder)
    elif to != folder:
        part = to.with_name(f".{to.name}.part")
        with storage_errors(str(to)):
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(folder, part)
        replace_folder(to, part)


def _local_copies(folder: StorePath, to: Path) -> Path:
    if content(to / MARKER) is not None:
        shutil.rmtree(to)
    names = [child.name for child in children(folder) if child.name[0] != "." and child.is_dir()]
    for old in to.glob("[!.]*/") if to.is_dir() else ():
        if old.name not in names:
            shutil.rmtree(old)
    for name in names:
        local_copy(folder / name, to / name)
    return to
