"""The seccomp filter: an allow list of system calls, some for certain arguments only, compiled to classic BPF.

A call in no list of `system_calls.toml` gets ENOSYS, on which libc falls back to an older call that is in one. That is
the right answer for what newer kernels add (futex_waitv, mseal, map_shadow_stack, cachestat, statmount, ...) and what
nothing here needs: mincore and membarrier show or disturb what other processes of the machine do.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Set
from itertools import chain
from typing import Any

from darkroom.sandbox._kernel import bpf
from darkroom.sandbox._kernel.bpf import ALLOW, Program, fail, on
from darkroom.sandbox._kernel.syscalls import machine, syscall
from darkroom.sandbox._kernel.tables import ALLOWED, CHECKS, METADATA, REFUSED, TABLES, SyscallTable

_SET_MODE_FILTER = 1
_BYTES_PER_INSTRUCTION = 8
_CHECKS: dict[str, Callable[..., Program]] = {
    "one_of": bpf.one_of,
    "with_bits": bpf.with_bits,
    "without_bits": bpf.without_bits,
    "null_pointer": bpf.null_pointer,
}


def build_filter(*, metadata_calls: bool, table: SyscallTable | None = None, process_id: int | None = None) -> bytes:
    """Compile the filter, by default for this machine and this process (the only one that it may signal).

    `metadata_calls` allows chmod, utime and truncate by path: only where a mount namespace keeps them on the session's
    own files. Raises KeyError on a machine without a table.
    """
    table = table or TABLES[machine()]
    allowed = ALLOWED if metadata_calls else ALLOWED - METADATA
    refused = REFUSED if metadata_calls else REFUSED | METADATA
    program = bpf.native_only(table.audit_arch, table.foreign_bit)
    for name, body in conditional_calls(process_id or os.getpid()).items():
        program += _decide(table, {name}, body)
    for number in table.xattr:
        program += on(number, [fail(errno.EOPNOTSUPP)])
    program += _decide(table, allowed, [ALLOW]) + _decide(table, refused, [fail(errno.EPERM)])
    program.append(fail(errno.ENOSYS))
    return bpf.assemble(program)


def install_filter(program: bytes) -> None:
    """Put the filter on this thread, for good; needs no_new_privs. Every thread made later inherits it."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // _BYTES_PER_INSTRUCTION, ctypes.addressof(code))
    syscall("seccomp", _SET_MODE_FILTER, 0, header)


def _decide(table: SyscallTable, names: Set[str], body: Program) -> Program:
    """A call that this machine does not have needs no decision."""
    numbers = sorted(table.numbers[name] for name in names if name in table.numbers)
    return [step for number in numbers for step in on(number, body)]


def conditional_calls(process_id: int) -> dict[str, Program]:
    """By name, what decides about the call; `process_id` is the only process that it may signal."""
    return {
        # abort() and pthread_kill; of an ordinary user every process of the user would be in reach
        "tgkill": [*bpf.one_of(0, (process_id,), errno.EPERM), ALLOW],
        "clone3": [fail(errno.ENOSYS)],  # its flags are behind a pointer: libc falls back to clone
        **{name: [*chain.from_iterable(map(_check, checks)), ALLOW] for name, checks in CHECKS.items()},
    }


def _check(terms: dict[str, Any]) -> Program:
    """What `system_calls.toml` says of one argument."""
    operands = {name: value for name, value in terms.items() if name not in ("check", "error")}
    return _CHECKS[terms["check"]](**operands, error=getattr(errno, terms["error"]))
