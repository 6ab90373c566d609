"""Standard output that cannot grow: head and tail are kept, the middle is counted.

Buffering above it is C (TextIOWrapper over BufferedWriter): a writer in Python costs four times as much per print.
"""

import io
from typing import Any

_BUFFER_BYTES = 32_768


class _HeadAndTail(io.RawIOBase):
    def __init__(self, cap: int) -> None:
        super().__init__()
        self._head_cap, self._tail_cap = cap * 3 // 4, cap - cap * 3 // 4
        self.clear()

    def clear(self) -> None:
        self.head, self.tail, self.n_bytes = bytearray(), b"", 0

    def writable(self) -> bool:
        return True

    def write(self, b: Any, /) -> int:
        data: memoryview[int] | bytes = b
        n_bytes = len(data)
        self.n_bytes += n_bytes
        room = self._head_cap - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if len(data) > 0:
            self.tail = (self.tail + bytes(data[-self._tail_cap :]))[-self._tail_cap :]
        return n_bytes


class CappedOutput(io.TextIOWrapper):
    """Takes the place of sys.stdout and sys.stderr alike, so that their lines keep their order."""

    def __init__(self, cap: int) -> None:
        self._kept = _HeadAndTail(cap)
        buffer = io.BufferedWriter(self._kept, _BUFFER_BYTES)
        super().__init__(buffer, encoding="utf-8", errors="replace", newline="\n")

    def clear(self) -> None:
        self.flush()
        self._kept.clear()

    def text(self) -> str:
        self.flush()
        kept = self._kept
        n_cut = kept.n_bytes - len(kept.head) - len(kept.tail)
        if n_cut == 0:
            return bytes(kept.head + kept.tail).decode("utf-8", "replace")
        head, tail = bytes(kept.head).decode("utf-8", "ignore"), kept.tail.decode("utf-8", "ignore")
        return f"{head}\n... [{n_cut} bytes cut] ...\n{tail}"

    def close(self) -> None:
        """Code that closes sys.stdout would break the next call."""
