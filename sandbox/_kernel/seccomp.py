"""The seccomp filter: an allow list of system calls, compiled to classic BPF."""

import ctypes
import errno
import struct
from collections.abc import Set
from typing import NamedTuple

from sandbox._kernel.syscalls import machine, syscall
from sandbox._kernel.tables import ALLOWED, METADATA, REFUSED, TABLES, SyscallTable

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_SET_MODE_FILTER = 1
# offsets in struct seccomp_data: the number, the ABI, then six 64-bit arguments
_NUMBER, _ABI, _ARGUMENTS = 0, 4, 16

_CLONE_THREAD = 0x00010000
_AF_UNIX = 1
_TERMINAL_SIZE_AND_FLAGS = (0x5401, 0x541B, 0x5421, 0x5451)  # TCGETS, FIONREAD, FIONBIO, FIOCLEX
_DUPLICATE_AND_FLAGS = (0, 1, 2, 3, 4, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC: no locks
_NAMES = (15, 16, 0x53564D41)  # PR_SET_NAME, PR_GET_NAME, PR_SET_VMA


class _Instruction(NamedTuple):
    code: int
    jump_true: int
    jump_false: int
    operand: int


def build_filter(*, metadata_calls: bool) -> bytes:
    """Compile the filter for this machine.

    `metadata_calls` allows chmod and utime: only where a mount namespace keeps them on the session's own files.
    Raises KeyError on a machine without a table.
    """
    table = TABLES[machine()]
    allowed = ALLOWED if metadata_calls else ALLOWED - METADATA
    refused = REFUSED if metadata_calls else REFUSED | METADATA
    program = [*_abi_check(table), *_conditional_calls(table)]
    for number in table.xattr:
        program += _on(number, [_fail(errno.EOPNOTSUPP)])
    program += _decide(table, allowed, [_return(_ALLOW)]) + _decide(table, refused, [_fail(errno.EPERM)])
    program.append(_fail(errno.ENOSYS))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def install_filter(program: bytes) -> None:
    """Put the filter on this thread, for good; needs no_new_privs. Every thread made later inherits it."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    syscall("seccomp", _SET_MODE_FILTER, 0, header)


def _abi_check(table: SyscallTable) -> list[_Instruction]:
    program = [_load(_ABI), _Instruction(_JUMP_EQUAL, 1, 0, table.audit_arch), _return(_KILL), _load(_NUMBER)]
    if table.foreign_bit:
        program += [_Instruction(_JUMP_AT_LEAST, 0, 1, table.foreign_bit), _return(_KILL)]
    return program


def _conditional_calls(table: SyscallTable) -> list[_Instruction]:
    refuse, allow = _fail(errno.EPERM), _return(_ALLOW)
    bodies: dict[str, list[_Instruction]] = {
        "clone": [_load_argument(0), _Instruction(_JUMP_ANY_BIT, 0, 1, _CLONE_THREAD), allow, refuse],
        "clone3": [_fail(errno.ENOSYS)],  # its flags are behind a pointer: libc falls back to clone
        "socketpair": [_load_argument(0), _Instruction(_JUMP_EQUAL, 0, 1, _AF_UNIX), allow, refuse],
        "ioctl": _one_of(1, _TERMINAL_SIZE_AND_FLAGS, _fail(errno.ENOTTY)),
        "fcntl": _one_of(1, _DUPLICATE_AND_FLAGS, refuse),
        "prctl": _one_of(0, _NAMES, refuse),
        "prlimit64": _null_pointer(2),
    }
    return [step for name, body in bodies.items() for step in _on(table.numbers[name], body)]


def _one_of(argument: int, values: tuple[int, ...], otherwise: _Instruction) -> list[_Instruction]:
    tests = [_Instruction(_JUMP_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_load_argument(argument), *tests, otherwise, _return(_ALLOW)]


def _null_pointer(argument: int) -> list[_Instruction]:
    low, high = _load_argument(argument), _load(_ARGUMENTS + 8 * argument + 4)
    refuse, allow = _fail(errno.EPERM), _return(_ALLOW)
    return [low, _unless_zero(skip=3), high, _unless_zero(skip=1), allow, refuse]


def _unless_zero(*, skip: int) -> _Instruction:
    return _Instruction(_JUMP_EQUAL, 0, skip, 0)


def _decide(table: SyscallTable, names: Set[str], body: list[_Instruction]) -> list[_Instruction]:
    numbers = sorted(table.numbers[name] for name in names if name in table.numbers)
    return [step for number in numbers for step in _on(number, body)]


def _on(number: int, body: list[_Instruction]) -> list[_Instruction]:
    return [_Instruction(_JUMP_EQUAL, 0, len(body), number), *body]


def _load(offset: int) -> _Instruction:
    return _Instruction(_LOAD, 0, 0, offset)


def _load_argument(index: int) -> _Instruction:
    return _load(_ARGUMENTS + 8 * index)


def _return(action: int) -> _Instruction:
    return _Instruction(_RETURN, 0, 0, action)


def _fail(number: int) -> _Instruction:
    return _return(_ERRNO | number)
