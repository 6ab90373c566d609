"""Gives up, for good, everything that a session or a decoder does not need. The order matters and is explained."""

import os
import resource
import signal
from dataclasses import dataclass

from darkroom.sandbox._guest.config import WORK_FOLDER, Identity
from darkroom.sandbox._guest.root import open_tmp
from darkroom.sandbox._kernel import landlock, seccomp, syscalls
from darkroom.sandbox.limits import Limits

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
    """See ZygoteConfig."""
    slot: int = 0
    work_folder: str | None = None
    """None for a process that writes no file."""
    filter: bytes | None = None
    """The seccomp filter, where it was built ahead; None: build it for this process."""


def lock_down(cage: Cage, kept_fds: set[int]) -> None:
    """Everything but the seccomp filter, which comes last: see `seal`. Of the descriptors only these stay open."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    uid = cage.identity.uid_of(cage.slot) if cage.identity.is_root else 0
    _prepare_work_folder(cage, uid)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    syscalls.close_all_except({0, 1, 2, *kept_fds})
    os.umask(0o077)
    _set_rlimits(cage)
    syscalls.drop_bounding_set()
    if cage.identity.is_root:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    syscalls.forbid_new_privileges()
    writable = ["/dev/null"]
    if cage.work_folder:
        writable += [cage.work_folder, f"{cage.work_folder}/.tmp"]
    if "Landlock" not in cage.switched_off:
        landlock.restrict(readable=cage.readable, writable=writable)
    syscalls.drop_capabilities()
    syscalls.forbid_dumps()
    syscalls.die_with_parent()  # last: a change of credentials clears it


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
    n_threads = _THREADS_PER_UID if cage.identity.is_root else _THREADS_OF_SHARED_UID
    limits = {
        resource.RLIMIT_NPROC: n_threads,
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
