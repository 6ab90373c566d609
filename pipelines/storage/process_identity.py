"""Identity of processes: numbers are reused; with boot and start time they are unique."""

import os
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4


class Stat(NamedTuple):
    """From ``/proc/<pid>/stat`` of a running process. ``start_ticks``: clock ticks since boot."""

    session: int
    start_ticks: int


def stat_of(pid: int) -> Stat | None:
    """None for a process that has ended, and for a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may contain blanks and brackets
    return None if fields[0] in "ZX" else Stat(session=int(fields[3]), start_ticks=int(fields[19]))


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def new_holder() -> str:
    """A name for something that this process holds: ``<boot>/<pid space>/<pid>/<start>/<random>``."""
    return f"{_space()}/{known_process(os.getpid())}/{uuid4().hex}"


def has_ended(holder: str) -> bool:
    """True if the holder's process was on this machine and has ended."""
    space, process = _space(), holder.split("/")[2:4]
    return holder.startswith(f"{space}/") and not runs("/".join(process))


def _space() -> str:
    return f"{boot_id()}/{os.stat('/proc/self/ns/pid').st_ino}"


def known_process(pid: int) -> str:
    """A process of this machine for good: ``<pid>/<start>``; the start is 0 for one that has ended."""
    stat = stat_of(pid)
    return f"{pid}/{stat.start_ticks if stat else 0}"


def runs(process: str) -> bool:
    return known_process(int(process.partition("/")[0])) == process
