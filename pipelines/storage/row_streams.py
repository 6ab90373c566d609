"""Rows that are read again whenever they are needed, or that wait on disk: neither is held in memory."""

import pickle
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

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


class RowSpill:
    """Rows on disk by where they begin, in a file of ``folder`` without a name: it goes with the spill."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # as long as the spill
        weakref.finalize(self, self._file.close)
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
