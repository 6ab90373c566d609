"""The seccomp filter: an allow list of system calls, some for certain arguments only, compiled to classic BPF.

A call in no list of `system_calls.toml` gets ENOSYS, on which libc falls back to an older call that is in one: so do
those that newer kernels add, and those that nothing here needs.

A check of an argument ends the call with an error or runs off its end into the next check, so checks are joined by `+`.
It looks at the low half of the 64 bits that the kernel reads, which is exact where the call takes an int.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterable, Set
from itertools import chain
from typing import Any, NamedTuple

from darkroom.sandbox._kernel.syscalls import ALLOWED, CHECKS, METADATA, REFUSED, TABLES, SyscallTable, machine, syscall

_LOAD, _MASK, _RETURN = 0x20, 0x54, 0x06
_JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
# offsets in struct seccomp_data: the number, the ABI, then six 64-bit arguments
_NUMBER, _ABI, _ARGUMENTS = 0, 4, 16
_EVERY_BIT = 0xFFFFFFFF


class Instruction(NamedTuple):
    code: int
    jump_true: int
    jump_false: int
    operand: int


Program = list[Instruction]
ALLOW = Instruction(_RETURN, 0, 0, _ALLOW)
KILL = Instruction(_RETURN, 0, 0, _KILL)


def fail(number: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, _ERRNO | number)


def native_only(audit_arch: int, foreign_bit: int) -> Program:
    """Kill what arrives through another ABI; leaves the call's number loaded, which `on` compares."""
    program = [_load(_ABI), Instruction(_JUMP_EQUAL, 1, 0, audit_arch), KILL, _load(_NUMBER)]
    if foreign_bit:
        program += [Instruction(_JUMP_AT_LEAST, 0, 1, foreign_bit), KILL]
    return program


def on(number: int, body: Program) -> Program:
    """Run `body`, which must end in a verdict, for this call only."""
    return [Instruction(_JUMP_EQUAL, 0, len(body), number), *body]


def one_of(argument: int, values: Iterable[int], error: int, *, mask: int = _EVERY_BIT) -> Program:
    """Fail with `error` unless the masked argument is one of the values."""
    operands = list(values)
    tests = [Instruction(_JUMP_EQUAL, len(operands) - index, 0, value) for index, value in enumerate(operands)]
    masked = [] if mask == _EVERY_BIT else [Instruction(_MASK, 0, 0, mask)]
    return [_load_argument(argument), *masked, *tests, fail(error)]


def with_bits(argument: int, bits: int, error: int) -> Program:
    """Fail with `error` unless one of the bits is set."""
    return [_load_argument(argument), Instruction(_JUMP_ANY_BIT, 1, 0, bits), fail(error)]


def without_bits(argument: int, bits: int, error: int) -> Program:
    """Fail with `error` if one of the bits is set."""
    return [_load_argument(argument), Instruction(_JUMP_ANY_BIT, 0, 1, bits), fail(error)]


def null_pointer(argument: int, error: int) -> Program:
    """Fail with `error` unless all 64 bits are zero."""
    halves = (_load_argument(argument), _load(_ARGUMENTS + 8 * argument + 4))
    return [step for half in halves for step in (half, Instruction(_JUMP_EQUAL, 1, 0, 0), fail(error))]


def assemble(program: Program) -> bytes:
    """The kernel's struct sock_filter[]. Raises struct.error where a jump does not fit its byte."""
    return struct.pack("=" + "HBBI" * len(program), *chain.from_iterable(program))


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _load_argument(index: int) -> Instruction:
    return _load(_ARGUMENTS + 8 * index)


_SET_MODE_FILTER = 1
_BYTES_PER_INSTRUCTION = 8
_CHECKS: dict[str, Callable[..., Program]] = {
    check.__name__: check for check in (one_of, with_bits, without_bits, null_pointer)
}


def build_filter(*, metadata_calls: bool, table: SyscallTable | None = None, process_id: int | None = None) -> bytes:
    """Compile the filter, by default for this machine and this process (the only one that it may signal).
    `metadata_calls` allows chmod, utime and truncate by path: only where a mount namespace keeps them on the session's
    own files. Raises KeyError on a machine without a table."""
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


def conditional_calls(process_id: int) -> dict[str, Program]:
    """Programs that decide about calls, by name; `process_id` is the only process that it may signal."""
    return {
        # abort() and pthread_kill; of an ordinary user every process of the user would be in reach
        "tgkill": [*one_of(0, (process_id,), errno.EPERM), ALLOW],
        "clone3": [fail(errno.ENOSYS)],  # its flags are behind a pointer: libc falls back to clone
        **{name: [*chain.from_iterable(map(_check, checks)), ALLOW] for name, checks in CHECKS.items()},
    }


def _check(terms: dict[str, Any]) -> Program:
    """Compile the check of one argument, as `system_calls.toml` has it."""
    operands = {name: value for name, value in terms.items() if name not in ("check", "error")}
    return _CHECKS[terms["check"]](**operands, error=getattr(errno, terms["error"]))
