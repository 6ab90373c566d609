"""The little that the sandbox's own processes read from /proc, through a handle taken while /proc can still be seen."""

import os

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

    def pid_namespace(self) -> int:
        return self._open("self/ns/pid")

    def _open(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
