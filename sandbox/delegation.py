"""Delegation of cgroup v2 to this process: by name, or by whoever started it.

Without a name a folder is taken only if it is the parent of this process's own cgroup, and either marked by systemd
(Delegate=yes) or the top of what a container was given. Root may write everywhere: that is no delegation.
"""

import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from darkroom.sandbox.errors import CGROUP_VARIABLE, raised_as

_CONTROLLERS = ("memory", "pids")
SUBTREE_CONTROL = " ".join(f"+{name}" for name in _CONTROLLERS)
_MARKS = ("user.delegate", "trusted.delegate")
_OWN_PREFIX = "0::"


class CgroupUnusable(Exception):
    """Why no limited cgroup can be made: a line of the doctor, or SandboxUnavailable where one was asked for."""


def usable(what: str) -> AbstractContextManager[None]:
    """An error of the operating system, raised within, is a CgroupUnusable that begins with `what`."""
    return raised_as(lambda error: CgroupUnusable(f"{what}: {error}"), OSError)


class CgroupMount(NamedTuple):
    """Mount point of cgroup2, and the folder of this process's own cgroup."""

    point: Path
    own: Path


def find_folder(environment: Mapping[str, str]) -> Path:
    """A folder whose children can be limited. Raises CgroupUnusable."""
    requested = environment.get(CGROUP_VARIABLE)
    mount = parse_mount(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup"))
    folder = Path(requested) if requested else delegated_parent(mount)
    check_controllers(folder)
    check_reach(folder, mount)
    return folder


def parse_mount(mountinfo: str, cgroup: str) -> CgroupMount:
    own = next((line.removeprefix(_OWN_PREFIX) for line in cgroup.splitlines() if line.startswith(_OWN_PREFIX)), None)
    if own is None:
        raise CgroupUnusable("this kernel runs without cgroup v2")
    for line in mountinfo.splitlines():
        mounted, _, source = line.partition(" - ")
        if source.split()[:1] == ["cgroup2"]:
            root, mount = (_unescape(field) for field in mounted.split()[3:5])
            path = PurePosixPath(own)
            if path.is_relative_to(root) and ".." not in path.parts:
                return CgroupMount(Path(mount), Path(mount) / path.relative_to(root))
    raise CgroupUnusable(f"no cgroup2 file system is mounted that shows {own}, the cgroup of this process")


def delegated_parent(mount: CgroupMount) -> Path:
    if mount.own == mount.point:
        raise CgroupUnusable(f"this process is in {mount.own} itself, and a cgroup with processes limits no children")
    parent = mount.own.parent
    is_marked = any(_attribute(parent, mark) == b"1" for mark in _MARKS)
    # the kernel's own root, which is delegated to no user, has no type
    is_top = parent == mount.point and (parent / "cgroup.type").exists() and os.access(parent, os.W_OK)
    if not is_marked and not is_top:
        raise CgroupUnusable(f"{parent}, the parent of the cgroup of this process, is not delegated")
    return parent


def check_controllers(folder: Path) -> None:
    """Children get what stands in cgroup.subtree_control; what is only missing there is switched on."""
    with usable(f"{folder} is no folder of cgroup v2"):
        available, enabled, processes = (
            (folder / f"cgroup.{name}").read_text(encoding="ascii").split()
            for name in ("controllers", "subtree_control", "procs")
        )
    if missing := [name for name in _CONTROLLERS if name not in available]:
        raise CgroupUnusable(f"{folder} has no controller {' and '.join(missing)} (cgroup v1 may hold it)")
    if n_processes := len(processes):
        raise CgroupUnusable(f"{folder} holds {n_processes} processes, and a cgroup with processes limits no children")
    if not set(_CONTROLLERS) <= set(enabled):
        with usable(f"memory and pids cannot be switched on for the children of {folder}"):
            (folder / "cgroup.subtree_control").write_text(SUBTREE_CONTROL)


def check_reach(folder: Path, mount: CgroupMount) -> None:
    """The kernel moves a process for those only who may write to the innermost cgroup that holds both places."""
    if not folder.is_relative_to(mount.point):
        return  # another mount of the hierarchy: the first move will tell
    ancestor = Path(os.path.commonpath([folder, mount.own]))
    if not os.access(ancestor / "cgroup.procs", os.W_OK):
        raise CgroupUnusable(f"this user may not move processes from {mount.own} to {folder}: {ancestor} is not theirs")


def _attribute(folder: Path, name: str) -> bytes | None:
    with suppress(OSError):
        return os.getxattr(folder, name)
    return None


def _read(path: str) -> str:
    with usable(f"{path} cannot be read"):
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")


def _unescape(field: str) -> str:
    """The kernel writes blanks as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field)
