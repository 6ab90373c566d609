"""Classic BPF as the kernel runs it for seccomp, in Python: what would a filter answer to a call of any machine?

Stricter than the kernel's own checker: a program that the kernel would refuse to load, and a run that would leave the
program, raise InvalidProgram.
"""

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _MASK, _JUMP, _RETURN = 0x20, 0x54, 0x05, 0x06
_EQUAL, _GREATER, _AT_LEAST, _ANY_BIT = 0x15, 0x25, 0x35, 0x45
_CONDITIONAL = (_EQUAL, _GREATER, _AT_LEAST, _ANY_BIT)
_INSTRUCTION = struct.Struct("=HBBI")
_DATA = struct.Struct("<IIQ6Q")
_MOST_INSTRUCTIONS = 4096


class InvalidProgram(Exception):
    """The kernel would not load it."""


class Step(NamedTuple):
    code: int
    jump_true: int
    jump_false: int
    operand: int


class Call(NamedTuple):
    """struct seccomp_data; arguments are unsigned 64-bit words."""

    arch: int
    number: int
    arguments: Sequence[int] = (0,) * 6


def verdict(program: bytes, call: Call) -> int:
    """What the program returns: ALLOW, KILL, or ERRNO with the number in its low half."""
    steps, data = load(program), _DATA.pack(call.number, call.arch, 0, *call.arguments)
    accumulator, position = 0, 0
    while True:
        step = steps[position]
        position += 1
        if step.code == _RETURN:
            return step.operand
        if step.code == _LOAD:
            accumulator = struct.unpack_from("<I", data, step.operand)[0]
        elif step.code == _MASK:
            accumulator &= step.operand
        elif step.code == _JUMP:
            position += step.operand
        else:
            position += step.jump_true if _holds(step, accumulator) else step.jump_false


@cache
def load(program: bytes) -> tuple[Step, ...]:
    """The steps. Every path ends in a return: jumps only go forward, and none leaves the program."""
    if not program or len(program) % _INSTRUCTION.size:
        raise InvalidProgram(f"{len(program)} bytes are no whole number of instructions")
    steps = [Step(*fields) for fields in _INSTRUCTION.iter_unpack(program)]
    if len(steps) > _MOST_INSTRUCTIONS:
        raise InvalidProgram(f"{len(steps)} instructions are more than {_MOST_INSTRUCTIONS}")
    for position, step in enumerate(steps):
        _check(step, len(steps) - position - 1)
    if steps[-1].code != _RETURN:
        raise InvalidProgram("the last instruction is no return")
    return tuple(steps)


def _check(step: Step, n_following: int) -> None:
    """A jump of 0 goes to the next instruction, which must exist."""
    if step.code in _CONDITIONAL:
        farthest = max(step.jump_true, step.jump_false)
    elif step.code == _JUMP:
        farthest = step.operand
    elif step.code == _LOAD:
        farthest = 0
        if step.operand % 4 or step.operand > _DATA.size - 4:
            raise InvalidProgram(f"{step} reads outside of the call's data")
    elif step.code in (_MASK, _RETURN):
        farthest = 0
    else:
        raise InvalidProgram(f"{step} is no instruction that seccomp programs here use")
    if step.code != _RETURN and farthest >= n_following:
        raise InvalidProgram(f"{step} leaves the program")


def _holds(step: Step, accumulator: int) -> bool:
    if step.code == _EQUAL:
        return accumulator == step.operand
    if step.code == _GREATER:
        return accumulator > step.operand
    if step.code == _AT_LEAST:
        return accumulator >= step.operand
    return bool(accumulator & step.operand)
