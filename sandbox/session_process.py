"""A session's process as the host holds it: its pidfd, and the memory that both share.

A lock without effect must not be trusted: before the first call, /proc is compared with what was asked for.
"""

import fcntl
import mmap
import os
import select
import signal

from PIL import Image

from darkroom.sandbox._guest.proc import uid_range
from darkroom.sandbox.errors import SandboxError

_END_MILLISECONDS = 5_000


def pid_of(pidfd: int) -> int:
    """Its process id as the host sees it, -1 once it has ended. Raises SandboxError where /proc does not tell."""
    try:
        return int(proc_fields(f"/proc/self/fdinfo/{pidfd}")["Pid"])
    except (OSError, KeyError, ValueError) as error:
        raise SandboxError(f"a session cannot be checked through /proc: {error}; nothing was run") from error


def proc_fields(path: str) -> dict[str, str]:
    """A file of /proc that consists of `name: value` lines."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def open_parent(pidfd: int) -> int | None:
    """A pidfd of its parent, which the caller closes; None where the process or the parent has ended."""
    try:
        parent = os.pidfd_open(int(proc_fields(f"/proc/{pid_of(pidfd)}/status")["PPid"]))
    except (OSError, ValueError):
        return None
    if has_ended(pidfd):  # then the pid may have been another process
        os.close(parent)
        return None
    return parent


def is_doomed(pidfd: int) -> bool:
    """Return whether it has ended or cannot do anything any more: a SIGKILL is waiting for it."""
    try:
        status = proc_fields(f"/proc/{pid_of(pidfd)}/status")
    except OSError:
        return True
    pending = int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)
    return has_ended(pidfd) or bool(pending >> (signal.SIGKILL - 1) & 1)


def has_ended(pidfd: int) -> bool:
    return _ends_within(pidfd, 0)


def wait_for_end(pidfd: int) -> bool:
    """False where it is still there after five seconds."""
    return _ends_within(pidfd, _END_MILLISECONDS)


def _ends_within(pidfd: int, milliseconds: int) -> bool:
    poll = select.poll()  # select() cannot take descriptors above 1023
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(milliseconds))


_CAPABILITY_SETS = ("CapEff", "CapPrm", "CapInh", "CapAmb")


def attest(pidfd: int, *, namespaces: bool, seccomp: bool = True) -> None:
    """Compare what /proc says of the process with what was asked for. Raises SandboxError and names the difference."""
    try:
        status = proc_fields(f"/proc/{pid_of(pidfd)}/status")
    except OSError as error:
        raise SandboxError(f"a session cannot be checked through /proc: {error}; nothing was run") from error
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
