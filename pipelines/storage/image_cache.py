"""A local copy of what was read from a remote image store, by digest: bounded in bytes, shared by processes.

``<folder>/ab/abcdef…``. A file's modification time says when it was last used; the longest unused go first.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.storage.atomic_write import write_whole

_ORPHAN_SECONDS = 3600
"""A part of a file that is older was left by a process that was killed while it wrote."""
_N_LOOKS = 20
"""Per ``max_bytes`` written: how often a process looks what all of them have written."""


class _File(NamedTuple):
    used_at: float
    n_bytes: int
    path: str


class ImageCache:
    """At most ``max_bytes``, and a twentieth more for each process that writes at the moment."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        self._n_unseen = max_bytes  # the first write looks what is there

    def get(self, sha256: str) -> bytes | None:
        """The bytes, if they are here and what they were; a file that was changed is deleted."""
        path = self._path(sha256)
        try:
            data = path.read_bytes()
            os.utime(path)
        except FileNotFoundError:  # or another process evicted it just now
            return None
        if digest_bytes(data) != sha256:
            path.unlink(missing_ok=True)
            return None
        return data

    def has(self, sha256: str) -> bool:
        """Whether there is a file of it, unread."""
        return self._path(sha256).exists()

    def put(self, sha256: str, data: bytes) -> None:
        """Keeps ``data``, and makes room. Raises ``StorageError`` when the disk cannot be written."""
        path = self._path(sha256)
        if len(data) > self.max_bytes // _N_LOOKS or path.exists():
            return
        write_whole(path, data)
        self._n_unseen += len(data)
        if self._n_unseen >= self.max_bytes // _N_LOOKS:
            self._n_unseen = 0
            self._make_room()

    def _path(self, sha256: str) -> Path:
        return self.folder / sha256[:2] / sha256

    def _make_room(self) -> None:
        files = sorted(self._files())
        n_bytes = sum(file.n_bytes for file in files)
        for file in files:
            if n_bytes <= self.max_bytes:
                return
            n_bytes -= file.n_bytes
            Path(file.path).unlink(missing_ok=True)  # another process may be quicker

    def _files(self) -> Iterator[_File]:
        """What is here, but for parts that are being written."""
        now = time.time()
        for folder in sorted(self.folder.iterdir()):
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:  # evicted, or renamed to its name, just now
                        continue
                    if not entry.name.startswith(".") or now - stat.st_mtime > _ORPHAN_SECONDS:
                        yield _File(stat.st_mtime, stat.st_size, entry.path)
