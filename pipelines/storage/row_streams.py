"""Rows that are read again whenever they are needed, or that wait on disk: neither is held in memory."""

import pickle
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

R = TypeVar("R")


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
