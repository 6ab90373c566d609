"""The file system that the code sees, and the lock-down of a session or a decoder; why its steps come in this order:
docs/sandbox_security.md."""

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from darkroom.sandbox._guest.messages import IMAGE_FOLDER, WORK_FOLDER, Identity
from darkroom.sandbox._kernel import landlock, seccomp, syscalls
from darkroom.sandbox.limits import Limits

_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_PASSWD = f"sandbox:x:1000:1000::{WORK_FOLDER}:/bin/false\n"
_GROUP = "sandbox:x:1000:\n"
_SIZE = "size=16m,mode=755,nr_inodes=8192"


def build_root(read_only: list[str], change_user: Callable[[], None] | None = None) -> None:
    """Replace the root of this mount namespace. Raises OSError. `change_user` is called when the folders are open, for
    the new user may not enter them."""
    syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    present = [path for path in read_only if os.path.exists(path) and not os.path.islink(path)]
    sources = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in (*present, *_DEVICES)}
    if change_user:
        change_user()
    # what the new root covers is reached through the descriptors opened above
    new_root = "/mnt" if os.path.isdir("/mnt") else "/tmp"
    syscalls.mount_tmpfs(new_root, _SIZE, executable=True)
    for path, fd in sources.items():
        _show(fd, new_root + path, is_device=path in _DEVICES)
    _copy_links(read_only, new_root)
    for folder in ("/etc", WORK_FOLDER, IMAGE_FOLDER):
        os.makedirs(new_root + folder, mode=0o755, exist_ok=True)
    Path(f"{new_root}/etc/passwd").write_text(_PASSWD, encoding="utf-8")
    Path(f"{new_root}/etc/group").write_text(_GROUP, encoding="utf-8")
    if not os.path.lexists(f"{new_root}/tmp"):  # an interpreter may live below /tmp: see `open_tmp`
        os.symlink(f"{WORK_FOLDER}/.tmp", f"{new_root}/tmp")
    for fd in sources.values():
        os.close(fd)
    syscalls.pivot_root(new_root)
    syscalls.make_read_only("/", below=False)  # its owner is the code's own uid where an ordinary user runs the pool


def open_tmp() -> None:
    """Make /tmp writable in a session, in whose mount namespace it is called: the symlink, or its folder mounted. What
    lies below /tmp, as an interpreter may, is shown there as before."""
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


def _show(fd: int, target: str, *, is_device: bool) -> None:
    source = f"/proc/self/fd/{fd}"
    is_folder = os.path.isdir(source)
    os.makedirs(target if is_folder else os.path.dirname(target), mode=0o755, exist_ok=True)
    if not is_folder:
        Path(target).touch()
    syscalls.mount(source, target, flags=syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.make_read_only(target, executable=not is_device, device=is_device)


_STACK_BYTES = 16 << 20
# frames of a video, opened all at once; each pair of sockets holds up to 425 kB of the kernel's memory
_OPEN_FILES = 512
_THREADS_PER_UID = 64
_THREADS_OF_SHARED_UID = 4096
# the host ends every call on its own clock: this one only stops what would outlive a lost host
_CPU_SECONDS = 3600


@dataclass(frozen=True)
class Cage:
    """All that a locked process keeps."""

    limits: Limits
    identity: Identity
    namespaces: bool
    readable: tuple[str, ...]
    base_bytes: int
    """Address space of the warm process, on top of which the memory limit counts."""
    switched_off: frozenset[str]
    slot: int = 0
    work_folder: str | None = None
    """None for a process that writes no file."""
    filter: bytes | None = None
    """The seccomp filter, where it was built ahead; None: build it for this process."""


def lock_down(cage: Cage, kept_fds: set[int]) -> None:
    """Lock down all but the system calls, which come last (`seal`). Of the descriptors only these stay open."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    uid = cage.identity.first_uid + cage.slot % cage.identity.n_uids
    _prepare_work_folder(cage, uid)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    syscalls.close_all_except({0, 1, 2, *kept_fds})
    os.umask(0o077)
    _set_rlimits(cage)
    syscalls.drop_bounding_set()
    if cage.identity.is_root:
        become(uid)
    syscalls.forbid_new_privileges()
    writable = ["/dev/null"]
    if cage.work_folder:
        writable += [cage.work_folder, f"{cage.work_folder}/.tmp"]
    if "Landlock" not in cage.switched_off:
        landlock.restrict(readable=cage.readable, writable=writable)
    syscalls.drop_capabilities()
    syscalls.forbid_dumps()
    syscalls.die_with_parent()  # last: a change of credentials clears it


def become(uid: int) -> None:
    """Be another user from now on; with 0, in a user namespace with uids of its own, its root."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def seal(cage: Cage) -> None:
    if "seccomp" not in cage.switched_off:
        seccomp.install_filter(cage.filter or seccomp.build_filter(metadata_calls=cage.namespaces))


def _prepare_work_folder(cage: Cage, uid: int) -> None:
    if cage.work_folder is None:
        os.chdir("/")
        return
    if cage.namespaces:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        options = f"size={cage.limits.disk_mb}m,nr_inodes={cage.limits.files},mode=700,uid={uid},gid={uid}"
        syscalls.mount_tmpfs(WORK_FOLDER, options)
    elif cage.identity.is_root:
        os.chown(cage.work_folder, uid, uid)
    os.mkdir(f"{cage.work_folder}/.tmp", 0o700)
    os.chown(f"{cage.work_folder}/.tmp", uid if cage.identity.is_root else -1, -1)
    if cage.namespaces:
        open_tmp()
    os.chdir(cage.work_folder)


def _set_rlimits(cage: Cage) -> None:
    limits = {
        resource.RLIMIT_NPROC: _THREADS_PER_UID if cage.identity.is_root else _THREADS_OF_SHARED_UID,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: cage.limits.file_mb << 20,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_STACK: _STACK_BYTES,
        resource.RLIMIT_AS: cage.base_bytes + (cage.limits.memory_mb << 20),
        resource.RLIMIT_CPU: _CPU_SECONDS,
    }
    for kind, most in limits.items():
        hard = resource.getrlimit(kind)[1]  # may be lower already, and only root could raise it
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large is an OSError, not the end
