"""The file system that the code sees: interpreter and libraries read-only, four devices, nothing else of the host."""

import os
from collections.abc import Callable
from pathlib import Path

from darkroom.sandbox._guest.config import IMAGE_FOLDER, WORK_FOLDER
from darkroom.sandbox._kernel import syscalls

_DEVICES = ("null", "zero", "urandom", "random")
_PASSWD = f"sandbox:x:1000:1000::{WORK_FOLDER}:/bin/false\n"
_GROUP = "sandbox:x:1000:\n"
_SIZE = "size=16m,mode=755,nr_inodes=8192"


def build_root(read_only: list[str], change_user: Callable[[], None] | None = None) -> None:
    """Replace the root of this mount namespace. Raises OSError.

    `change_user`: called when the folders are open, which the new user may not enter.
    """
    syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    present = [path for path in read_only if os.path.exists(path) and not os.path.islink(path)]
    sources = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in present}
    devices = {name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in _DEVICES}
    if change_user:
        change_user()
    # what the new root covers is reached through the descriptors opened above
    new_root = "/mnt" if os.path.isdir("/mnt") else "/tmp"
    syscalls.mount_tmpfs(new_root, _SIZE, executable=True)
    for path, fd in sources.items():
        _show(fd, new_root + path)
    _copy_links(read_only, new_root)
    for folder in ("/dev", "/etc", WORK_FOLDER, IMAGE_FOLDER):
        os.makedirs(new_root + folder, mode=0o755, exist_ok=True)
    for name, fd in devices.items():
        Path(f"{new_root}/dev/{name}").touch()
        syscalls.mount(_by_descriptor(fd), f"{new_root}/dev/{name}", flags=syscalls.MS_BIND)
        syscalls.make_read_only(f"{new_root}/dev/{name}", executable=False, device=True)
    Path(f"{new_root}/etc/passwd").write_text(_PASSWD, encoding="utf-8")
    Path(f"{new_root}/etc/group").write_text(_GROUP, encoding="utf-8")
    if not os.path.lexists(f"{new_root}/tmp"):  # an interpreter may live below /tmp: see `open_tmp`
        os.symlink(f"{WORK_FOLDER}/.tmp", f"{new_root}/tmp")
    for fd in (*sources.values(), *devices.values()):
        os.close(fd)
    syscalls.pivot_root(new_root)
    syscalls.make_read_only("/", below=False)  # its owner is the code's own uid where an ordinary user runs the pool


def open_tmp() -> None:
    """Make /tmp writable in a session, in whose mount namespace it is called: the symlink, or its folder mounted.

    What lies below /tmp, as an interpreter may, is shown there as before.
    """
    if os.path.islink("/tmp"):
        return
    own = f"{WORK_FOLDER}/.tmp"
    for name in os.listdir("/tmp"):
        os.mkdir(f"{own}/{name}")
        syscalls.mount(f"/tmp/{name}", f"{own}/{name}", flags=syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.mount(own, "/tmp", flags=syscalls.MS_BIND | syscalls.MS_REC)


def _copy_links(paths: list[str], new_root: str) -> None:
    """/lib -> usr/lib and the like: the target is shown on its own."""
    for path in paths:
        if os.path.islink(path) and not os.path.lexists(new_root + path):
            os.makedirs(os.path.dirname(new_root + path), mode=0o755, exist_ok=True)
            os.symlink(os.readlink(path), new_root + path)


def _show(fd: int, target: str) -> None:
    if os.path.isdir(_by_descriptor(fd)):
        os.makedirs(target, mode=0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        Path(target).touch()
    syscalls.mount(_by_descriptor(fd), target, flags=syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.make_read_only(target)


def _by_descriptor(fd: int) -> str:
    return f"/proc/self/fd/{fd}"
