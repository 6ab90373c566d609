"""Reads of /proc by the sandbox's own processes, and the uids and powers that it tells of."""

import errno
import mmap
import os
from collections.abc import Callable
from functools import cache, partial

Opener = Callable[[str, int], int]
_PREFERRED_FIRST, _PREFERRED_COUNT = 200_000, 65_536
_LEAST_COUNT = 2_000
_CAP_SYS_ADMIN = 21


@cache
def uid_range() -> tuple[int, int] | None:
    """First uid and number of uids that root can give to the sandbox; None where there is only the user's own: for an
    ordinary user, and for root of a rootless container with one uid."""
    if os.geteuid() != 0:
        return None
    with open("/proc/self/uid_map", encoding="ascii") as lines:
        extents = [(int(inside), int(count)) for inside, _, count in map(str.split, lines)]
    first, count = max(extents, key=lambda extent: extent[1])
    if first <= _PREFERRED_FIRST and first + count >= _PREFERRED_FIRST + _PREFERRED_COUNT:
        return _PREFERRED_FIRST, _PREFERRED_COUNT
    if count >= 2 * _LEAST_COUNT:
        return first + count // 2, count - count // 2
    return None


def may_mount() -> bool:
    """Check for CAP_SYS_ADMIN: a container's root without it can mount in a user namespace of its own only."""
    return bool(int(proc_fields("/proc/self/status")["CapEff"], 16) >> _CAP_SYS_ADMIN & 1)


def proc_fields(path: str, opener: Opener | None = None) -> dict[str, str]:
    """Read a file of /proc that consists of `name: value` lines."""
    with open(path, encoding="utf-8", errors="replace", opener=opener) as lines:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


class Proc:
    """A handle taken while /proc can still be seen; sessions and decoders close it with every other descriptor."""

    def __init__(self) -> None:
        self._folder = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._opener: Opener = partial(os.open, dir_fd=self._folder)

    def address_space(self) -> int:
        """Bytes that count towards RLIMIT_AS."""
        with open("self/statm", opener=self._opener) as file:
            return int(file.read().split()[0]) * mmap.PAGESIZE

    def n_threads(self) -> int:
        return int(proc_fields("self/status", self._opener)["Threads"])

    def limit_processes(self, most: int) -> None:
        """Limit the caller's pid namespace (Linux 6.14); containers show /proc/sys read-only."""
        try:
            with open("sys/kernel/pid_max", "w", opener=self._opener) as file:
                file.write(str(most))
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES, errno.EROFS):
                raise

    def pid_namespace(self) -> int:
        return os.open("self/ns/pid", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)

    def open_run_queue(self, pid: int) -> int:
        """A child's account of its waiting for a CPU (`ProcessClock`), for the caller to close; or -1."""
        pidfd = os.pidfd_open(pid)
        try:
            # its number in the namespace that /proc shows
            outer = proc_fields(f"self/fdinfo/{pidfd}", self._opener)["Pid"]
            return os.open(f"{outer}/schedstat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or is hidden
            return -1
        finally:
            os.close(pidfd)
