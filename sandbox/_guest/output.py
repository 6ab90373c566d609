"""Output of the code, kept within bounds: head and tail are kept, the middle is counted.

Python's text stays in memory; buffering above it is C (TextIOWrapper over BufferedWriter): a writer in Python costs
four times as much per print. What goes to the descriptors 1 and 2 past Python, by os.write or by a C library, lands in
a file in memory and joins the rest whenever Python's buffer is flushed: the order of a program whose output goes to a
file. That file grows to `Limits.file_mb` within one call; beyond, os.write raises OSError.
"""

import fcntl
import gc
import io
import os
import resource
import sys
import threading
from contextlib import suppress
from typing import Any

from darkroom.sandbox._kernel import syscalls

_BUFFER_BYTES = 32_768
_READ_BYTES = 1 << 20
_STANDARD_OUTPUT, _STANDARD_ERROR = 1, 2
_OUT_OF_THE_WAY = 12
"""So many below the highest descriptor that a session may have: most code that goes through them comes from below."""


class _HeadAndTail(io.RawIOBase):
    def __init__(self, cap: int) -> None:
        super().__init__()
        self._head_cap, self._tail_cap = cap * 3 // 4, cap - cap * 3 // 4
        self.file = -1
        """What the descriptors 1 and 2 write to, in a session."""
        self.clear()

    def clear(self) -> None:
        self.head, self.tail, self.n_bytes = bytearray(), b"", 0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _STANDARD_OUTPUT

    def write(self, b: Any, /) -> int:
        self.take_in()
        return self._keep(b)

    def take_in(self) -> None:
        """Empty the file. Another file that the code may have put in its place is left alone."""
        with suppress(OSError):
            n_bytes = os.fstat(self.file).st_size if self.file >= 0 else 0
            for start in range(0, n_bytes, _READ_BYTES):
                self._keep(os.pread(self.file, min(_READ_BYTES, n_bytes - start), start))
            if n_bytes:
                os.ftruncate(self.file, 0)

    def _keep(self, b: Any) -> int:
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


class _Bytes(io.BufferedWriter):
    """Stays open whoever wrapped it, and dropped what he wrapped it in."""

    def close(self) -> None:
        self.flush()

    def detach(self) -> Any:
        self.flush()
        return self.raw


class _Text(io.TextIOWrapper):
    def close(self) -> None:
        self.flush()

    def detach(self) -> Any:
        self.flush()
        return self.buffer

    def reconfigure(self, **_: Any) -> None:
        """Change nothing: the reader expects UTF-8."""
        self.flush()


class Output:
    """Standard output and error in one stream, so that their lines keep their order, whatever the code does to it."""

    def __init__(self, cap: int) -> None:
        self._kept = _HeadAndTail(cap)
        self._buffer = _Bytes(self._kept, _BUFFER_BYTES)
        self._stream = _Text(self._buffer, encoding="utf-8", errors="replace", newline="\n")
        self._n_references = sys.getrefcount(self._buffer)

    def open(self) -> None:
        """Take over all that is printed from now on; called in the session, before its filter."""
        file = os.memfd_create("output", os.MFD_CLOEXEC)
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        self._kept.file = os.dup2(file, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OUT_OF_THE_WAY)
        os.close(file)

    def begin(self, late: frozenset[threading.Thread]) -> None:
        """Undo what an earlier call has done to the streams and descriptors; drop what its `late` threads print."""
        vars(self._stream).pop("write", None)
        if late:
            write = self._stream.write

            def write_in_time(text: str, /) -> int:
                return len(text) if threading.current_thread() in late else write(text)

            vars(self._stream)["write"] = write_in_time
        if self._kept.file >= 0:
            for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
                setattr(sys, name, self._stream)
            with suppress(OSError):
                os.dup2(self._kept.file, _STANDARD_OUTPUT)
                os.dup2(self._kept.file, _STANDARD_ERROR)

    def flush(self) -> None:
        """Flush all streams, with the wrappers that the code has put around them, which may run its code."""
        standard = (getattr(sys, name, None) for name in ("stdout", "stderr"))
        wrappers: dict[int, Any] = {id(stream): stream for stream in standard if stream is not self._stream}
        if sys.getrefcount(self._buffer) > self._n_references:
            users = (user for user in gc.get_referrers(self._buffer) if isinstance(user, io.TextIOWrapper))
            wrappers |= {id(user): user for user in users}
        for wrapper in wrappers.values():
            with suppress(Exception, SystemExit):
                wrapper.flush()
        syscalls.flush_c_streams()

    def text(self) -> str:
        """Return all text since the last `forget`."""
        self._stream.flush()
        buffer = self._kept
        buffer.take_in()
        n_cut = buffer.n_bytes - len(buffer.head) - len(buffer.tail)
        if n_cut == 0:
            return bytes(buffer.head + buffer.tail).decode("utf-8", "replace")
        head, tail = bytes(buffer.head).decode("utf-8", "ignore"), buffer.tail.decode("utf-8", "ignore")
        return f"{head}\n... [{n_cut} bytes cut] ...\n{tail}"

    def forget(self) -> None:
        """Drop the reported text, and what reading the code's images has printed meanwhile."""
        self._stream.flush()
        self._kept.take_in()
        self._kept.clear()
