"""The little that the sandbox's own processes read from /proc, through a handle taken while /proc can still be seen."""

import os
from contextlib import suppress

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Proc:
    """Open before the root is replaced; sessions and decoders close it with every other descriptor."""

    def __init__(self) -> None:
        self._folder = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def address_space(self) -> int:
        """Bytes that count towards RLIMIT_AS."""
        fd = self._open("self/statm")
        try:
            return int(os.read(fd, 256).split()[0]) * _PAGE
        finally:
            os.close(fd)

    def n_threads(self) -> int:
        fd = self._open("self/task")
        try:
            return len(os.listdir(fd))
        finally:
            os.close(fd)

    def writable_memory(self) -> list[tuple[int, int]]:
        """First address, and the one after the last, of the heap and of every anonymous mapping."""
        with os.fdopen(self._open("self/maps"), encoding="ascii", errors="replace") as lines:
            rows = [line.split() for line in lines]
        areas = [row[0].split("-") for row in rows if row[1] == "rw-p" and row[5:] in ([], ["[heap]"])]
        return [(int(first, 16), int(end, 16)) for first, end in areas]

    def limit_processes(self, most: int) -> None:
        """For the caller's pid namespace, of which it is the first process (Linux 6.14; older kernels refuse)."""
        with suppress(PermissionError):
            fd = os.open("sys/kernel/pid_max", os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                os.write(fd, str(most).encode())
            finally:
                os.close(fd)

    def pid_namespace(self) -> int:
        return self._open("self/ns/pid")

    def _open(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
