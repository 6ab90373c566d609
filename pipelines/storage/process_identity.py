"""Which process a number means: process numbers are reused, with boot and start time they are one process for good."""

from pathlib import Path
from typing import NamedTuple


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
    """Of this machine since it was started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
