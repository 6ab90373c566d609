"""Rows that are read again whenever they are needed, or that wait on disk: neither is held in memory."""

import pickle
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

R = TypeVar("R")
_UNSORTED = 1 << 14
"""Keys that wait in a dict, or an eighth of all: 100 bytes each."""


@dataclass(frozen=True, slots=True)
class RowStream(Collection[R]):
    """``n_rows`` rows that ``read`` gives, the same ones each time."""

    n_rows: int
    read: Callable[[], Iterator[R]]

    def __len__(self) -> int:
        return self.n_rows

    def __iter__(self) -> Iterator[R]:
        return self.read()

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)


def scratch_file(owner: object, folder: Path | None, *, in_memory: int = 0) -> IO[bytes]:
    """A file without a name that is closed with its ``owner``, in ``folder``; None: where the system keeps such files.

    Up to ``in_memory`` bytes no file is made.
    """
    file: Any = (
        tempfile.SpooledTemporaryFile(in_memory, dir=None if folder is None else str(folder))  # noqa: SIM115  # closed with the owner
        if in_memory
        else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    )
    weakref.finalize(owner, file.close)
    opened: IO[bytes] = file
    return opened


class RowSpill:
    """Rows on disk by where they begin, in a file of ``folder`` without a name: it goes with the spill."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = scratch_file(self, folder)
        self._end = 0

    def add(self, row: Any) -> int:
        """Where the row begins."""
        begin = self._end
        self._file.seek(begin)
        pickle.dump(row, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._end = self._file.tell()
        return begin

    def read(self, begin: int) -> Any:
        """The row that begins there."""
        self._file.seek(begin)
        return pickle.load(self._file)  # written by this process, seen by no other


class KeyedSpill:
    """Rows on disk by keys of 64 bits (``digest.key64``): of each about 30 bytes are in memory."""

    def __init__(self, folder: Path) -> None:
        self._spill = RowSpill(folder)
        self._keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._begins: NDArray[np.int64] = np.zeros(0, np.int64)
        self._unsorted: dict[int, int] = {}

    def add(self, key: int, row: Any) -> None:
        """A key's last row is the one that counts."""
        self._unsorted[key] = self._spill.add(row)
        if len(self._unsorted) >= max(_UNSORTED, len(self._keys) // 8):
            self._sort()

    def get(self, key: int) -> Any:
        """The row; None where there is none."""
        begin = self._unsorted.get(key)
        if begin is None:
            place = int(np.searchsorted(self._keys, np.uint64(key), "right")) - 1
            if place < 0 or self._keys[place] != key:
                return None
            begin = int(self._begins[place])
        return self._spill.read(begin)

    def _sort(self) -> None:
        keys = np.concatenate([self._keys, np.fromiter(self._unsorted, np.uint64)])
        begins = np.concatenate([self._begins, np.fromiter(self._unsorted.values(), np.int64)])
        order = np.argsort(keys, kind="stable")  # what was added later stays behind
        self._keys, self._begins = keys[order], begins[order]
        self._unsorted.clear()
