"""The uids that the sandbox may use, and whether its root is one: in a container it may have little of root's power."""

import os
from functools import cache

_PREFERRED_FIRST, _PREFERRED_COUNT = 200_000, 65_536
_LEAST_COUNT = 2_000
_CAP_SYS_ADMIN = 21


@cache
def uid_range() -> tuple[int, int] | None:
    """First uid and number of uids that root can give to the sandbox.

    None where there is only the user's own: for an ordinary user, and for root of a rootless container with one uid.
    """
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
    """False for root of a container without CAP_SYS_ADMIN, which can mount in a user namespace of its own only."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return bool(effective >> _CAP_SYS_ADMIN & 1)
