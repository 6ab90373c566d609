"""The first process: enters the namespaces, starts the zygote in them and ends it with the host.

Runs in a fresh interpreter with a scrubbed environment: no host memory, secret or ground truth is in reach. A failure
on the way is sent to the host as {"missing": protection, "reason": ...}.
"""

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path
from types import ModuleType

from darkroom.sandbox._guest.lockdown import become, build_root
from darkroom.sandbox._guest.messages import WORK_FOLDER, Identity, ZygoteConfig, brief
from darkroom.sandbox._guest.proc import Proc, may_mount, uid_range
from darkroom.sandbox._kernel import landlock, syscalls
from darkroom.sandbox._kernel.syscalls import TABLES
from darkroom.sandbox.folders import remove_when_unused

_NO_NETWORK = "there is no network; work with the images of the task and with what the code computes"
_NO_READER = "there is no text recognition; crop and enlarge the text, show it and read it in the image"
INSTEAD = {
    **dict.fromkeys(("requests", "httpx", "aiohttp", "urllib3", "bs4", "selenium", "gdown", "wget"), _NO_NETWORK),
    **dict.fromkeys(("pytesseract", "easyocr", "paddleocr", "tesserocr", "keras_ocr", "doctr"), _NO_READER),
}
"""Libraries that models often try, and what to do without them."""


class LibraryFinder:
    """Finds Python's own modules, the libraries that the host allows, and the code's own. Others are as if not
    installed, for the allowed ones, too: some do another thing where an optional one is there. This is order and no
    protection: the files can be read."""

    def __init__(self, listed: Sequence[str], allowed: Iterable[str]) -> None:
        self._told = ", ".join(listed)
        self._allowed = {*allowed, *sys.stdlib_module_names}
        pythons_own = os.path.dirname(os.__file__)
        self._folders = {*sys.path, *map(os.path.realpath, sys.path)} - {pythons_own, f"{pythons_own}/lib-dynload"}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if path is not None or name in self._allowed or (spec is not None and not self._is_of_a_library(spec)):
            return spec
        caller = sys._getframe(1).f_back
        if caller is None or caller.f_code.co_name != "_find_and_load_unlocked":
            return None  # `importlib.util.find_spec` asks whether there is such a module
        instead = f": {INSTEAD[name]}" if name in INSTEAD else f", which has {self._told}"
        raise ModuleNotFoundError(f"No module named {name!r} in the sandbox{instead}", name=name)

    invalidate_caches = staticmethod(PathFinder.invalidate_caches)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """Find the metadata of an allowed library: some look up their own version when they are imported."""
        is_allowed = context.name is not None and context.name.replace("-", "_") in self._allowed
        return MetadataPathFinder.find_distributions(context) if is_allowed else ()

    def _is_of_a_library(self, spec: ModuleSpec) -> bool:
        places = list(spec.submodule_search_locations or [spec.origin or ""])
        return any(os.path.dirname(place) in self._folders for place in places)


_FIRST_SESSION_UID = 1_000
_HOSTS_SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
"""A scheduler sends them to every process of a job; the tree ends with its host and by nothing else."""


def main(control_fd: int) -> None:
    control = socket.socket(fileno=control_fd)
    sys.argv, sys.orig_argv = [""], [""]
    for number in _HOSTS_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    config = ZygoteConfig(**json.loads(control.recv(1 << 20)))
    user_namespace = _UserNamespace(uid_range())
    zygote = os.fork()
    if zygote == 0:
        try:
            _enter(control, config, user_namespace)
        except BaseException as error:  # noqa: BLE001 - the host gets a message, and the child must not continue
            _report(control, error)
        os._exit(1)
    if config.namespaces:
        try:
            user_namespace.write_map(zygote)
        except OSError as error:
            _report(control, MissingProtection("user namespaces", str(error)))
            os._exit(1)
    control.close()
    _end_with_host(config.host_pidfd, zygote, config.scratch)


class _UserNamespace:
    """Entered by the child; its uid map is written by the parent, because only it may map more than one uid."""

    def __init__(self, uids: tuple[int, int] | None) -> None:
        self.uids = uids
        self._parent, self._child = socket.socketpair()

    def enter(self) -> None:
        with _required("user namespaces"):
            syscalls.unshare(syscalls.CLONE_NEWUSER)
            self._child.send(b"u")
            if self._child.recv(1) != b"m":
                raise OSError("the uid map was refused")

    def write_map(self, pid: int) -> None:
        self._child.close()
        if not self._parent.recv(1):
            return  # the child failed and has said why
        proc = Path(f"/proc/{pid}")
        (uid, n_uids), (gid, n_gids) = self.uids or (os.getuid(), 1), self.uids or (os.getgid(), 1)
        if self.uids is None:
            (proc / "setgroups").write_text("deny")
        (proc / "uid_map").write_text(f"0 {uid} {n_uids}")
        (proc / "gid_map").write_text(f"0 {gid} {n_gids}")
        self._parent.send(b"m")


class MissingProtection(Exception):
    """Arguments: the protection and the reason."""


@contextmanager
def _required(protection: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MissingProtection(protection, str(error)) from error


def _enter(control: socket.socket, config: ZygoteConfig, user_namespace: _UserNamespace) -> None:
    syscalls.die_with_parent()
    if syscalls.machine() not in TABLES:
        raise MissingProtection("seccomp", f"there is no table of system calls for {syscalls.machine()}")
    if landlock.abi_version() < 1:
        raise MissingProtection("Landlock", "the kernel does not offer it")
    proc = Proc()
    with suppress(OSError):  # hardened kernels refuse it: the memory limit still holds
        Path("/proc/self/oom_score_adj").write_text("800")
    if config.namespaces:
        _enter_namespaces(config, user_namespace)
        syscalls.die_with_parent()  # again: the new credentials have cleared it
        pid = os.fork()  # the first child of a new pid namespace is its init: when it ends, all end
        if pid:
            control.close()
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)
        syscalls.die_with_parent()
        syscalls.mount_tmpfs(WORK_FOLDER, "size=32m")  # matplotlib wants to write while it is imported
    os.mkdir(os.environ["TMPDIR"])
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, LibraryFinder(config.libraries, config.importable)]
    from darkroom.sandbox._guest.zygote import serve  # the libraries are imported only behind the namespaces

    serve(control, config, _identity(user_namespace.uids, namespaces=config.namespaces), proc)


def _enter_namespaces(config: ZygoteConfig, user_namespace: _UserNamespace) -> None:
    with _required("mount namespaces"):
        if user_namespace.uids and may_mount():  # root builds the tree while it can still read every library
            syscalls.unshare(syscalls.CLONE_NEWNS)
            build_root(config.read_only)
            user_namespace.enter()
            become(0)
            syscalls.unshare(syscalls.CLONE_NEWNS)
        else:  # an ordinary user, or root of a container that may not mount
            user_namespace.enter()
            syscalls.unshare(syscalls.CLONE_NEWNS)
            build_root(config.read_only, partial(become, 0) if user_namespace.uids else None)
    with _required("pid, network, ipc, uts and cgroup namespaces"):
        syscalls.unshare(syscalls.OTHER_NAMESPACES)
        socket.sethostname("sandbox")


def _identity(uids: tuple[int, int] | None, *, namespaces: bool) -> Identity:
    if uids is None:
        return Identity(is_root=False)
    first = 0 if namespaces else uids[0]  # in the namespace they count from 0
    return Identity(is_root=True, first_uid=first + _FIRST_SESSION_UID, n_uids=uids[1] - _FIRST_SESSION_UID)


def _end_with_host(host_pidfd: int, zygote: int, scratch: str | None) -> None:
    """Wait for either to end. PDEATHSIG would watch the host's *thread* that started us, which may end early."""
    zygote_pidfd = os.pidfd_open(zygote)
    ended, _, _ = select.select([host_pidfd, zygote_pidfd], [], [])
    signal.pidfd_send_signal(zygote_pidfd, signal.SIGKILL)
    os.waitpid(zygote, 0)
    if scratch and host_pidfd in ended:
        remove_when_unused(scratch)
    os._exit(0)


def _report(control: socket.socket, error: BaseException) -> None:
    missing, reason = error.args if isinstance(error, MissingProtection) else ("a working start", brief(error))
    with suppress(OSError):  # the host is gone: no reader is left
        control.send(json.dumps({"missing": missing, "reason": reason}).encode())
