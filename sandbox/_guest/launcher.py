"""The first process: enters the namespaces, starts the zygote in them and ends it with the host.

Runs in a fresh interpreter with a scrubbed environment: no host memory, secret or ground truth is in reach. What fails
on the way is sent to the host as {"missing": protection, "reason": ...}.
"""

import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sandbox._guest.config import WORK_FOLDER, Identity, ZygoteConfig
from sandbox._guest.proc import Proc
from sandbox._guest.root import build_root
from sandbox._kernel import landlock, syscalls
from sandbox._kernel.tables import TABLES

_OTHER_NAMESPACES = (
    syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
)
_PREFERRED_FIRST_UID, _PREFERRED_N_UIDS = 200_000, 65_536
_LEAST_N_UIDS = 2_000
_FIRST_SESSION_UID = 1_000


def main(control_fd: int) -> None:
    control = socket.socket(fileno=control_fd)
    sys.argv, sys.orig_argv = [""], [""]
    config = ZygoteConfig(**json.loads(control.recv(1 << 20)))
    user_namespace = _Mapping(_uid_range() if os.geteuid() == 0 else None)
    zygote = os.fork()
    if zygote == 0:
        _in_child(control, lambda: _enter(control, config, user_namespace))
    if config.namespaces:
        _in_parent(control, lambda: user_namespace.write(zygote))
    control.close()
    _end_with_host(config.host_pidfd, zygote)


class _Mapping:
    """The uid map of the user namespace: written by the parent, because only it may map more than one uid."""

    def __init__(self, uids: tuple[int, int] | None) -> None:
        self._uids = uids
        self._parent, self._child = socket.socketpair()

    @property
    def has_range(self) -> bool:
        return self._uids is not None

    @property
    def identity(self) -> Identity:
        if self._uids is None:
            return Identity(is_root=False)
        return Identity(is_root=True, first_uid=_FIRST_SESSION_UID, n_uids=self._uids[1] - _FIRST_SESSION_UID)

    def enter(self) -> None:
        with _required("user namespaces"):
            syscalls.unshare(syscalls.CLONE_NEWUSER)
            self._child.send(b"u")
            if self._child.recv(1) != b"m":
                raise OSError("the uid map was refused")

    def write(self, pid: int) -> None:
        self._child.close()
        if not self._parent.recv(1):
            return  # the child failed and has said why
        if self._uids is None:
            _write(f"/proc/{pid}/setgroups", "deny")
            _write(f"/proc/{pid}/uid_map", f"0 {os.getuid()} 1")
            _write(f"/proc/{pid}/gid_map", f"0 {os.getgid()} 1")
        else:
            first, n_uids = self._uids
            _write(f"/proc/{pid}/uid_map", f"0 {first} {n_uids}")
            _write(f"/proc/{pid}/gid_map", f"0 {first} {n_uids}")
        self._parent.send(b"m")


class MissingProtection(Exception):
    def __init__(self, protection: str, reason: str) -> None:
        super().__init__(f"{protection}: {reason}")
        self.protection = protection
        self.reason = reason


@contextmanager
def _required(protection: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MissingProtection(protection, str(error)) from error


def _enter(control: socket.socket, config: ZygoteConfig, user_namespace: _Mapping) -> None:
    syscalls.die_with_parent()
    _require_machine()
    proc = Proc()
    _volunteer_for_out_of_memory()
    if not config.namespaces:
        identity = _lite_identity()
    else:
        _enter_namespaces(config, user_namespace)
        syscalls.die_with_parent()  # again: the new credentials have cleared it
        pid = os.fork()  # the first child of a new pid namespace is its init: when it ends, all end
        if pid:
            control.close()
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)
        syscalls.die_with_parent()
        identity = user_namespace.identity
    if config.namespaces:
        syscalls.mount_tmpfs(WORK_FOLDER, "size=32m")  # matplotlib wants to write while it is imported
    os.mkdir(os.environ["TMPDIR"])
    from sandbox._guest.zygote import serve  # the libraries are imported only behind the namespaces

    serve(control, config, identity, proc)


def _require_machine() -> None:
    if syscalls.machine() not in TABLES:
        raise MissingProtection("seccomp", f"there is no table of system calls for {syscalls.machine()}")
    if landlock.abi_version() < 1:
        raise MissingProtection("Landlock", "the kernel does not offer it")


def _enter_namespaces(config: ZygoteConfig, user_namespace: _Mapping) -> None:
    if user_namespace.has_range:  # root builds the tree while it can still read every library, then stops being root
        with _required("mount namespaces"):
            syscalls.unshare(syscalls.CLONE_NEWNS)
            build_root(config.read_only)
        user_namespace.enter()
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        with _required("mount namespaces"):
            syscalls.unshare(syscalls.CLONE_NEWNS)
    else:
        user_namespace.enter()
        with _required("mount namespaces"):
            syscalls.unshare(syscalls.CLONE_NEWNS)
            build_root(config.read_only)
    with _required("pid, network, ipc, uts and cgroup namespaces"):
        syscalls.unshare(_OTHER_NAMESPACES)
        socket.sethostname("sandbox")


def _uid_range() -> tuple[int, int] | None:
    """First uid and number of uids that root can give to the sandbox; None where only one uid exists."""
    with open("/proc/self/uid_map", encoding="ascii") as lines:
        highest = max(int(inside) + int(count) for inside, _, count in map(str.split, lines))
    if highest >= _PREFERRED_FIRST_UID + _PREFERRED_N_UIDS:
        return _PREFERRED_FIRST_UID, _PREFERRED_N_UIDS
    if highest >= 2 * _LEAST_N_UIDS:
        return highest // 2, highest - highest // 2
    return None


def _lite_identity() -> Identity:
    uids = _uid_range()
    if os.geteuid() != 0 or uids is None:
        return Identity(is_root=False)
    return Identity(is_root=True, first_uid=uids[0] + _FIRST_SESSION_UID, n_uids=uids[1] - _FIRST_SESSION_UID)


def _volunteer_for_out_of_memory() -> None:
    try:
        _write("/proc/self/oom_score_adj", "800")
    except OSError:
        return  # hardened kernels refuse it: the memory limit still holds


def _end_with_host(host_pidfd: int, zygote: int) -> None:
    """Wait for either to end. PDEATHSIG would watch the host's *thread* that started us, which may end early."""
    zygote_pidfd = os.pidfd_open(zygote)
    select.select([host_pidfd, zygote_pidfd], [], [])
    signal.pidfd_send_signal(zygote_pidfd, signal.SIGKILL)
    os.waitpid(zygote, 0)
    os._exit(0)


def _in_child(control: socket.socket, work: Callable[[], None]) -> None:
    try:
        work()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - the host gets a message, and the child must not continue
        _report(control, error)
        os._exit(1)


def _in_parent(control: socket.socket, work: Callable[[], None]) -> None:
    try:
        work()
    except OSError as error:
        _report(control, MissingProtection("user namespaces", str(error)))
        os._exit(1)


def _report(control: socket.socket, error: BaseException) -> None:
    if isinstance(error, MissingProtection):
        message = {"missing": error.protection, "reason": error.reason}
    else:
        message = {"missing": "a working start", "reason": "".join(traceback.format_exception(error))[-3000:]}
    try:
        control.send(json.dumps(message).encode())
    except OSError:
        return  # the host is gone: no reader is left


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
