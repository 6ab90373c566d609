"""Folders of an object store as local ones: what training reads is copied here, what it reports is copied there."""

import shutil
from pathlib import Path

from darkroom.pipelines.storage.atomic_write import MARKER, one_at_a_time, replace_folder, upload_folder
from darkroom.pipelines.storage.places import Place, children, content, read_at_once
from darkroom.pipelines.storage.storage_errors import storage_errors


def local_copy(folder: Place, to: Path) -> Path:
    """A local folder with the datasets at or below ``folder``: itself, or ``to``, where what is unchanged is kept.

    A dataset that is no longer in the store, or incomplete there, is no longer in ``to``. Of processes that want a copy
    at the same time, as those of a training on several GPUs do, one makes it.
    """
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


def share_folder(folder: Path, to: Place) -> None:
    """Copies or uploads a folder, unless it lies where it is to be. Raises ``StorageError``."""
    if not isinstance(to, Path):
        upload_folder(to, folder)
    elif to != folder:
        part = to.with_name(f".{to.name}.part")
        with storage_errors(str(to)):
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(folder, part)
        replace_folder(to, part)


def _local_copies(folder: Place, to: Path) -> Path:
    """Of the folders below."""
    if content(to / MARKER) is not None:
        shutil.rmtree(to)
    names = [child.name for child in children(folder) if child.name[0] != "." and child.is_dir()]
    for old in to.glob("[!.]*/") if to.is_dir() else ():
        if old.name not in names:
            shutil.rmtree(old)
    for name in names:
        local_copy(folder / name, to / name)
    return to
