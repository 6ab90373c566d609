"""Tries each protection in a child process of its own and prints what happened; run by the doctor."""

import fcntl
import json
import os
import signal
from collections.abc import Callable

from darkroom.sandbox._guest.proc import may_mount
from darkroom.sandbox._kernel import landlock, seccomp, syscalls
from darkroom.sandbox._kernel.syscalls import TABLES


def mount_namespaces() -> None:
    _enter_user_namespace()
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount_tmpfs("/tmp", "size=1m")
    syscalls.pivot_root("/tmp")


def other_namespaces() -> None:
    _enter_user_namespace()
    syscalls.unshare(syscalls.OTHER_NAMESPACES)


def landlock_rules() -> None:
    syscalls.forbid_new_privileges()
    landlock.restrict(readable=["/usr"], writable=[])
    _expect_refusal(lambda: os.listdir("/"), "a restricted process can still list /")


def seccomp_filter() -> None:
    if syscalls.machine() not in TABLES:
        raise OSError(f"there is no table of system calls for {syscalls.machine()}")
    syscalls.forbid_new_privileges()
    seccomp.install_filter(seccomp.build_filter(metadata_calls=True))
    _expect_refusal(os.fork, "a filtered process can still fork")


def sealed_memory_files() -> None:
    fd = os.memfd_create("probe", os.MFD_ALLOW_SEALING)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


PROBES: dict[str, Callable[[], None]] = {
    "user namespaces": lambda: syscalls.unshare(syscalls.CLONE_NEWUSER),
    "mount namespaces": mount_namespaces,
    "pid, network, ipc, uts and cgroup namespaces": other_namespaces,
    "Landlock": landlock_rules,
    "seccomp": seccomp_filter,
    "pidfd": lambda: signal.pidfd_send_signal(os.pidfd_open(os.getpid()), 0),
    "sealed memory files": sealed_memory_files,
}


def main() -> None:
    """Print as JSON {protection: reason of failure or null}, and the ABI version of Landlock (0: there is none)."""
    abi = landlock.abi_version() if syscalls.machine() in TABLES else 0
    print(json.dumps({"failures": {name: _try(probe) for name, probe in PROBES.items()}, "landlock_abi": abi}))


def _try(probe: Callable[[], None]) -> str | None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            probe()
        except BaseException as error:  # noqa: BLE001 - whatever went wrong is the finding
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        reason = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return reason or (None if code == 0 else f"the probe ended with {code}")


def _expect_refusal(action: Callable[[], object], otherwise: str) -> None:
    try:
        action()
    except PermissionError:
        return
    raise OSError(otherwise)


def _enter_user_namespace() -> None:
    if os.geteuid() != 0 or not may_mount():
        syscalls.unshare(syscalls.CLONE_NEWUSER)
