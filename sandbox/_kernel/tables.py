"""System calls as data, from `system_calls.toml`: their numbers per machine, and which of them a session may make.

Only machines that stand in `TABLES` can run the sandbox: on another the filter cannot be built, and the doctor says so.
The numbers are those of the kernel's <asm/unistd.h>: a test compares them with the headers of the machine it runs on.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple


class SyscallTable(NamedTuple):
    """What a seccomp filter has to know about one machine."""

    audit_arch: int
    """AUDIT_ARCH_* of the native ABI; a call that arrives through another ABI kills the process."""
    foreign_bit: int
    """Numbers at or above this belong to a second ABI behind the same AUDIT_ARCH (x32); 0 where there is none."""
    xattr: range
    """The block of extended-attribute calls: EOPNOTSUPP, which shutil.copytree copes with and ENOSYS it does not."""
    numbers: dict[str, int]


def _table(machine: dict[str, Any]) -> SyscallTable:
    return SyscallTable(**machine | {"xattr": range(*machine["xattr"])})


_DATA = tomllib.loads(Path(__file__).with_name("system_calls.toml").read_text(encoding="utf-8"))
TABLES = {name: _table(machine) for name, machine in _DATA["machines"].items()}
ALLOWED = frozenset(_DATA["allowed"].split())
CHECKS: dict[str, list[dict[str, Any]]] = _DATA["checks"]
"""By name, what the arguments of a call must pass: see `seccomp`."""
REFUSED = frozenset(_DATA["refused"].split())
"""Calls that answer EPERM, so that the model's code sees the refusal it would see as an ordinary user."""
METADATA = frozenset(_DATA["metadata"].split())
"""Allowed calls that Landlock does not cover (truncate only since Linux 6.2): refused without a mount namespace."""
