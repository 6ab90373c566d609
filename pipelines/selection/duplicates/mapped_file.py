"""Numbers in a file without a name that is mapped while they are read.

What was read counts as memory of this process until it lets go of it; the system may take the pages back at any time.
"""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darkroom.pipelines.storage.row_streams import scratch_file


class MappedFile:
    """``folder``: where the file lies; None: where the system keeps temporary ones."""

    def __init__(self, folder: Path | None) -> None:
        self._file = scratch_file(self, folder)
        self._n_bytes = 0
        self._map: mmap.mmap | None = None

    def append(self, numbers: NDArray[Any]) -> None:
        """Adds the numbers at the end. Nothing is added once the file was read."""
        self._n_bytes += self._file.write(np.ascontiguousarray(numbers).data.cast("B") if numbers.size else b"")

    def array(self, kind: type[Any]) -> NDArray[Any]:
        """All numbers, which are of one kind."""
        if not self._n_bytes:
            return np.zeros(0, kind)
        if self._map is None:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._file.close()  # the map keeps it
        return np.frombuffer(self._map, kind)

    def let_go(self) -> None:
        """Pages that were read are no longer this process's; they are read again where they are needed."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
