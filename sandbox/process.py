"""The host's ends of the sandbox's processes: the zygote, and each session by its pidfd and the memory that both share.
Before a session's first call /proc is compared with what was asked for: a lock may have no effect."""

import fcntl
import importlib.util
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Any

from PIL import Image

from darkroom.sandbox._guest.messages import GroupRequest, ZygoteConfig
from darkroom.sandbox._guest.proc import proc_fields as proc_fields, uid_range
from darkroom.sandbox.digest import added_libraries, importable_modules
from darkroom.sandbox.errors import SandboxClosed, SandboxError, SandboxUnavailable, Tier, advice, raised_as
from darkroom.sandbox.frames import is_ready

_PACKAGE = Path(__file__).resolve().parent  # the root of a session shows no link to a folder
# a bare package, so that the host's half is never imported on the other side
BOOTSTRAP = (
    "import sys, types; "
    "outer, package = types.ModuleType('darkroom'), types.ModuleType('darkroom.sandbox'); "
    "outer.__path__, package.__path__ = [], [sys.argv[1]]; "
    "sys.modules.update({'darkroom': outer, 'darkroom.sandbox': package}); "
)
_START = BOOTSTRAP + "from darkroom.sandbox._guest.launcher import main; main(int(sys.argv[2]))"
_SYSTEM = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/alternatives"]
_ENVIRONMENT: dict[str, str] = tomllib.loads(Path(__file__).with_name("environment.toml").read_text("utf-8"))
_START_SECONDS = 120.0
_END_SECONDS = 10.0


class ZygoteProcess:
    """Construction returns at once; the first `send` waits."""

    def __init__(self, tier: Tier, *, home: str, scratch: str | None = None, switched_off: Iterable[str] = ()) -> None:
        if not sys.platform.startswith("linux"):
            raise SandboxUnavailable(advice("Linux", f"this is {sys.platform}", tier))
        self._tier: Tier = tier
        self._control, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        host_pidfd = os.pidfd_open(os.getpid())
        # in memory: the machine may have no folder that it can write to
        self._errors: IO[bytes] = os.fdopen(os.memfd_create("errors"), "w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-c", _START, str(_PACKAGE), str(far_end.fileno())],
            pass_fds=[far_end.fileno(), host_pidfd],
            env=_environment(home),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,  # what a terminal or Slurm sends to the host's group is the host's to decide on
        )
        self.pid = self._process.pid
        far_end.close()
        listed, importable = importable_modules(added_libraries())
        config = ZygoteConfig(
            namespaces=tier == "full",
            read_only=read_only_paths(),
            host_pidfd=host_pidfd,
            scratch=scratch,
            switched_off=sorted(switched_off),
            libraries=listed,
            importable=importable,
        )
        self._control.send(json.dumps(asdict(config)).encode())
        os.close(host_pidfd)
        self._ready = False

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def _wait_until_ready(self) -> None:
        if self._ready:
            return
        self._control.settimeout(_START_SECONDS)
        try:
            answer: dict[str, Any] = json.loads(self._control.recv(1 << 16) or b"{}")
        except TimeoutError:
            answer = {"reason": f"it was not ready after {_START_SECONDS:.0f} s"}
        except ConnectionError:
            answer = {}
        if not answer.get("ready"):
            self._errors.seek(0)
            words = self._errors.read()[-2000:].decode("utf-8", "replace").strip()
            reason = answer.get("reason") or words or "the process ended without a word"
            self.close()
            raise SandboxUnavailable(advice(answer.get("missing", "a working start"), reason, self._tier))
        self._ready = True

    def send(self, request: GroupRequest, fds: Sequence[int]) -> None:
        """Wait for the zygote and send. Raises SandboxClosed where it has ended, SandboxUnavailable with what to do."""
        self._wait_until_ready()
        with raised_as(lambda _: SandboxClosed("the zygote has ended"), OSError):
            socket.send_fds(self._control, [json.dumps(asdict(request)).encode()], fds)

    def kill(self) -> None:
        """Kill the tree; all that wait for its answer stop waiting."""
        self._process.kill()  # the whole tree dies with its launcher

    def close(self) -> None:
        self._control.close()
        self.kill()
        self._process.wait(_END_SECONDS)
        self._errors.close()


def read_only_paths() -> list[str]:
    """Host paths that a session may read: the interpreter, the libraries and the system's own."""
    folders = {sys.prefix, sys.base_prefix, *_library_folders()}
    folders |= {os.path.realpath(folder) for folder in folders}
    folders.add(str(_PACKAGE))
    covered = [*_SYSTEM]
    for folder in sorted(folders - {"/"}, key=len):
        if not any(folder == outer or folder.startswith(f"{outer}/") for outer in covered):
            covered.append(folder)
    return covered


def _library_folders() -> set[str]:
    """Folders on the path that hold the libraries; usually the one below sys.prefix."""
    listed, _ = importable_modules(added_libraries())
    specs = [importlib.util.find_spec(name) for name in listed]
    origins = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
    folders = {str(origin.parent.parent if origin.name == "__init__.py" else origin.parent) for origin in origins}
    return folders - {sysconfig.get_path("stdlib")}


def _environment(home: str) -> dict[str, str]:
    outside = [folder for folder in sorted(_library_folders()) if not folder.startswith((sys.prefix, sys.base_prefix))]
    own = {"HOME": home, "TMPDIR": f"{home}/.tmp", "MPLCONFIGDIR": f"{home}/.tmp"}
    return {**_ENVIRONMENT, **own, **({"PYTHONPATH": os.pathsep.join(outside)} if outside else {})}


END_MILLISECONDS = 5_000
"""Longest wait for a process that was killed."""


def _unchecked(error: Exception) -> SandboxError:
    return SandboxError(f"a session cannot be checked through /proc: {error}; nothing was run")


_readable = partial(raised_as, _unchecked, OSError, KeyError, ValueError)


def pid_of(pidfd: int) -> int:
    """Process id as the host sees it, -1 once it has ended. Raises SandboxError where /proc does not tell."""
    with _readable():
        return int(proc_fields(f"/proc/self/fdinfo/{pidfd}")["Pid"])


def is_doomed(pidfd: int) -> bool:
    """Return whether it has ended or cannot do anything any more: a SIGKILL is waiting for it."""
    try:
        status = proc_fields(f"/proc/{pid_of(pidfd)}/status")
    except OSError:
        return True
    pending = int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)
    return has_ended(pidfd) or bool(pending >> (signal.SIGKILL - 1) & 1)


def has_ended(pidfd: int, *, within_milliseconds: int = 0) -> bool:
    return is_ready(pidfd, select.POLLIN, within_milliseconds)


_CAPABILITY_SETS = ("CapEff", "CapPrm", "CapInh", "CapAmb")


def attest(pidfd: int, *, namespaces: bool, seccomp: bool = True) -> None:
    """Compare what /proc says of the process with what was asked for. Raises SandboxError and names the difference."""
    with _readable():
        status = proc_fields(f"/proc/{pid_of(pidfd)}/status")
    # an ordinary user without a user namespace cannot empty the bounding set, nor use it under NoNewPrivs
    emptied = (*_CAPABILITY_SETS, "CapBnd") if namespaces or os.geteuid() == 0 else _CAPABILITY_SETS
    expected = {"Seccomp": "2" if seccomp else "0", "NoNewPrivs": "1", **dict.fromkeys(emptied, "0" * 16)}
    faults = [f"{field} is {status.get(field)}" for field in expected if status.get(field) != expected[field]]
    if namespaces and len(status.get("NSpid", "").split()) < 3:
        faults.append("it is in no pid namespace of its own")
    if uid_range() is not None and status.get("Uid", "0").split()[0] == "0":
        faults.append("it runs as the host's root")
    if has_ended(pidfd):  # only after reading: then the pid cannot have been another process
        faults.append("it has ended")
    if faults:
        raise SandboxError(f"a session is not locked down: {', '.join(faults)}; nothing was run. Try `doctor`.")


_KEPT_BYTES = 16 << 20
"""Pages that stay for the next reply, which is cheaper for them; of a larger one they are given back."""


class Window:
    """Cannot be resized by either side."""

    def __init__(self, n_bytes: int) -> None:
        self.fd = os.memfd_create("pixels", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        """For the session; see `handed_over`."""
        os.ftruncate(self.fd, n_bytes)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._memory = mmap.mmap(self.fd, n_bytes)

    def handed_over(self) -> None:
        """The session has its descriptor; this one is closed."""
        os.close(self.fd)
        self.fd = -1

    def read(self, sizes: list[tuple[int, int]]) -> list[Image.Image]:
        """RGB images of these widths and heights, one after the other from the start."""
        images, start = list[Image.Image](), 0
        with memoryview(self._memory) as memory:
            for width, height in sizes:
                end = start + width * height * 3
                with memory[start:end] as pixels:
                    images.append(Image.frombytes("RGB", (width, height), pixels))
                start = end
        if start > _KEPT_BYTES:
            self._memory.madvise(mmap.MADV_REMOVE)
        return images

    def close(self) -> None:
        self._memory.close()
        if self.fd >= 0:
            self.handed_over()
