"""The seccomp filter: an allow list of system calls, compiled to classic BPF."""

import ctypes
import errno
import os
import struct
from collections.abc import Set

from sandbox._kernel.bpf import ALLOW, Program, assemble, fail, native_only, on
from sandbox._kernel.decisions import ALLOWED, METADATA, REFUSED, conditional_calls
from sandbox._kernel.syscalls import machine, syscall
from sandbox._kernel.tables import TABLES, SyscallTable

_SET_MODE_FILTER = 1
_BYTES_PER_INSTRUCTION = 8


def build_filter(*, metadata_calls: bool, table: SyscallTable | None = None, process_id: int | None = None) -> bytes:
    """Compile the filter, by default for this machine and this process (the only one that it may signal).

    `metadata_calls` allows chmod, utime and truncate by path: only where a mount namespace keeps them on the session's
    own files. Raises KeyError on a machine without a table.
    """
    table = table or TABLES[machine()]
    allowed = ALLOWED if metadata_calls else ALLOWED - METADATA
    refused = REFUSED if metadata_calls else REFUSED | METADATA
    program = native_only(table.audit_arch, table.foreign_bit)
    for name, body in conditional_calls(process_id or os.getpid()).items():
        program += _decide(table, {name}, body)
    for number in table.xattr:
        program += on(number, [fail(errno.EOPNOTSUPP)])
    program += _decide(table, allowed, [ALLOW]) + _decide(table, refused, [fail(errno.EPERM)])
    program.append(fail(errno.ENOSYS))
    return assemble(program)


def install_filter(program: bytes) -> None:
    """Put the filter on this thread, for good; needs no_new_privs. Every thread made later inherits it."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // _BYTES_PER_INSTRUCTION, ctypes.addressof(code))
    syscall("seccomp", _SET_MODE_FILTER, 0, header)


def _decide(table: SyscallTable, names: Set[str], body: Program) -> Program:
    """A call that this machine does not have needs no decision."""
    numbers = sorted(table.numbers[name] for name in names if name in table.numbers)
    return [step for number in numbers for step in on(number, body)]
