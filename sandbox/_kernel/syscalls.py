"""Raw system calls (mounts, namespaces, capabilities, prctl, memory); `system_calls.toml` has their numbers, as in the
kernel's <asm/unistd.h>. Only machines that stand in `TABLES` can run the sandbox."""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple


class SyscallTable(NamedTuple):
    """Facts about one machine for the seccomp filter."""

    audit_arch: int
    """AUDIT_ARCH_* of the native ABI; a call that arrives through another ABI kills the process."""
    foreign_bit: int
    """Numbers at or above this belong to a second ABI behind the same AUDIT_ARCH (x32); 0 where there is none."""
    xattr: range
    """The block of extended-attribute calls: EOPNOTSUPP, which shutil.copytree copes with and ENOSYS it does not."""
    numbers: dict[str, int]


_DATA = tomllib.loads(Path(__file__).with_name("system_calls.toml").read_text(encoding="utf-8"))
TABLES = {name: SyscallTable(**facts | {"xattr": range(*facts["xattr"])}) for name, facts in _DATA["machines"].items()}
ALLOWED = frozenset(_DATA["allowed"].split())
CHECKS: dict[str, list[dict[str, Any]]] = _DATA["checks"]
"""By name, what the arguments of a call must pass: see `seccomp`."""
REFUSED = frozenset(_DATA["refused"].split())
"""Calls that answer EPERM, so that the model's code sees the refusal it would see as an ordinary user."""
METADATA = frozenset(_DATA["metadata"].split())
"""Allowed calls that Landlock does not cover (truncate only since Linux 6.2): refused without a mount namespace."""

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
OTHER_NAMESPACES = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_READ_ONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV, _MOUNT_ATTR_NOEXEC = 1, 2, 4, 8

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_SIGKILL = 9
_SEAL_WAITS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_libc_with_gil = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
Argument = int | bytes | ctypes.Array[ctypes.c_char] | None


def machine() -> str:
    """A key of TABLES, unless this interpreter is a 32-bit one, whose calls have other numbers."""
    name = os.uname().machine  # `platform` would remember the host's name from before the namespaces
    return name if struct.calcsize("P") == 8 else f"32-bit programs on {name}"


def syscall(name: str, *arguments: Argument) -> int:
    """Make one system call by name; an integer goes as a C long. Raises OSError with the call's name."""
    number = TABLES[machine()].numbers[name]
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *words), name)


def fork_bare() -> int:
    """fork(2) without Python's own work in the child, which writes to 180 pages and so copies them. Only for a process
    with one thread, whose locks are free. What `os.register_at_fork` holds is not run (random seeds)."""
    return _checked(_libc_with_gil.fork(), "fork")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    _checked(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str, target: str, *, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    texts = (None if text is None else os.fsencode(text) for text in (source, target, kind, options))
    where, onto, what, how = texts
    _checked(_libc.mount(where, onto, what, ctypes.c_ulong(flags), how), f"mount on {target}")


def mount_tmpfs(target: str, options: str, *, executable: bool = False) -> None:
    flags = MS_NOSUID | MS_NODEV | (0 if executable else MS_NOEXEC)
    mount("tmpfs", target, kind="tmpfs", flags=flags, options=options)


def unmount(target: str) -> None:
    _checked(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"umount of {target}")


def make_read_only(target: str, *, executable: bool = True, device: bool = False, below: bool = True) -> None:
    """Make the mount at `target`, and those below it, read-only, without set-uid programs and (but for one) devices. A
    device that is mounted so can still be written to; its times cannot be changed."""
    flags = _MOUNT_ATTR_READ_ONLY | _MOUNT_ATTR_NOSUID
    flags |= (0 if device else _MOUNT_ATTR_NODEV) | (0 if executable else _MOUNT_ATTR_NOEXEC)
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    syscall("mount_setattr", _AT_FDCWD, target.encode(), _AT_RECURSIVE if below else 0, attributes, len(attributes))


def pivot_root(new_root: str) -> None:
    """Make `new_root` the root and detach the old one, which nothing can reach from then on."""
    os.chdir(new_root)
    syscall("pivot_root", b".", b".")
    unmount(".")
    os.chdir("/")


def die_with_parent() -> None:
    """SIGKILL when the parent thread ends; a change of credentials clears it, so set it after the last one."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def forbid_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forbid_dumps() -> None:
    _prctl(_PR_SET_DUMPABLE, 0)


def drop_bounding_set() -> None:
    """Needs CAP_SETPCAP: before the uid is given up."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            return


def drop_capabilities() -> None:
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    syscall("capset", struct.pack("II", _CAPABILITY_VERSION_3, 0), bytes(24))


def close_all_except(kept_fds: set[int]) -> None:
    first = 0
    for fd in sorted(kept_fds):
        if fd > first:
            syscall("close_range", first, fd - 1, 0)
        first = fd + 1
    syscall("close_range", first, 0x7FFFFFFF, 0)


def flush_c_streams() -> None:
    """Write what C libraries have printed and not yet written."""
    _libc.fflush(None)


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0))), f"prctl {option}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def map_file(fd: int, n_bytes: int, *, shared: bool) -> int:
    """Address of the file's bytes; unless they are shared, a page is copied when it is written to. Raises OSError."""
    kind = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
    return syscall("mmap", 0, n_bytes, mmap.PROT_READ | mmap.PROT_WRITE, kind, fd, 0)


def seal(fd: int, seals: int) -> None:
    """Add seals to a memory file. Raises OSError. F_SEAL_WRITE is refused with EBUSY while someone may still write, and
    while the kernel itself holds a page: waits up to 4.4 s for that."""
    for seconds in (*_SEAL_WAITS, None):
        try:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        except OSError as error:
            if error.errno != errno.EBUSY or seconds is None:
                raise
            time.sleep(seconds)
        else:
            return


def restore(address: int, n_bytes: int) -> None:
    """Give up what was written to such a mapping: it shows the file again. Raises OSError."""
    syscall("madvise", address, n_bytes, mmap.MADV_DONTNEED)


def bytes_at(address: int, n_bytes: int) -> "memoryview[int]":
    """The memory itself; whoever holds it must not outlive the mapping."""
    return memoryview((ctypes.c_ubyte * n_bytes).from_address(address)).cast("B")
