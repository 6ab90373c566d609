"""Landlock: which files the process may still open, whatever its uid.

It does not hide that a file exists (stat), nor refuse chmod, chown or utime; nor truncation before Linux 6.2, commands
to devices before 6.10, signals and abstract sockets before 6.12: namespaces and seccomp do.
"""

import os
import struct
from collections.abc import Iterable

from darkroom.sandbox._kernel.syscalls import syscall

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 10, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ACCESS_BITS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
_ACCESS_BITS = 16
_HANDLED_SINCE = {4: 3, 6: 3}  # by ABI: no TCP port; no abstract socket, no signal
_CREATE_RULESET_VERSION, _RULE_PATH_BENEATH = 1, 1


def abi_version() -> int:
    """ABI version of Landlock; 0 where the kernel has none, or has it switched off."""
    try:
        return syscall("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict(*, readable: Iterable[str], writable: Iterable[str]) -> None:
    """Limit this process and its children, for good, to the given trees; nothing may be executed anywhere."""
    abi = abi_version()
    if abi < 1:
        raise OSError("Landlock is not available")
    every_access = (1 << _ACCESS_BITS_BY_ABI.get(abi, _ACCESS_BITS)) - 1
    handled = [every_access, *(bits for since, bits in _HANDLED_SINCE.items() if abi >= since)]
    attributes = struct.pack(f"{len(handled)}Q", *handled)
    ruleset = syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    write = every_access & ~(_EXECUTE | _MAKE_CHAR | _MAKE_SOCK | _MAKE_FIFO | _MAKE_BLOCK)
    for path in readable:
        _allow(ruleset, path, _READ_FILE | _READ_DIR)
    for path in writable:
        _allow(ruleset, path, write)
    syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return  # a library folder that this machine lacks: nothing to allow
    try:
        if not os.path.isdir(path):
            access &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
        syscall("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", access, fd), 0)
    finally:
        os.close(fd)
