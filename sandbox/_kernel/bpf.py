"""Classic BPF as seccomp runs it: instructions, and small programs that test one argument of a system call.

A check ends the call with an error or runs off its end into the next check, so that checks are joined by `+`. The
kernel reads an argument as 64 bits; a check looks at the low half only, which is exact where the call takes an int.
"""

import struct
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

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
    """`error` unless the masked argument is one of the values."""
    wanted = list(values)
    tests = [Instruction(_JUMP_EQUAL, len(wanted) - index, 0, value) for index, value in enumerate(wanted)]
    masked = [] if mask == _EVERY_BIT else [Instruction(_MASK, 0, 0, mask)]
    return [_load_argument(argument), *masked, *tests, fail(error)]


def with_bits(argument: int, bits: int, error: int) -> Program:
    """`error` unless one of the bits is set."""
    return [_load_argument(argument), Instruction(_JUMP_ANY_BIT, 1, 0, bits), fail(error)]


def without_bits(argument: int, bits: int, error: int) -> Program:
    """`error` if one of the bits is set."""
    return [_load_argument(argument), Instruction(_JUMP_ANY_BIT, 0, 1, bits), fail(error)]


def null_pointer(argument: int, error: int) -> Program:
    """`error` unless all 64 bits are zero."""
    halves = (_load_argument(argument), _load(_ARGUMENTS + 8 * argument + 4))
    return [step for half in halves for step in (half, Instruction(_JUMP_EQUAL, 1, 0, 0), fail(error))]


def assemble(program: Program) -> bytes:
    """The kernel's struct sock_filter[]. Raises struct.error where a jump does not fit its byte."""
    return struct.pack("=" + "HBBI" * len(program), *chain.from_iterable(program))


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _load_argument(index: int) -> Instruction:
    return _load(_ARGUMENTS + 8 * index)
