"""The host's own look at a session before its first call: a lock that silently did nothing must not be trusted."""

import os
import select

from sandbox.errors import SandboxError

_CAPABILITY_SETS = ("CapEff", "CapPrm", "CapInh", "CapAmb")


def attest(pidfd: int, *, namespaces: bool, seccomp: bool = True) -> None:
    """Compare what /proc says of the process with what was asked for. Raises SandboxError and names the difference."""
    status = _status_of(pidfd)
    wanted = _wanted(namespaces=namespaces, seccomp=seccomp)
    faults = [f"{field} is {status.get(field)}" for field in wanted if status.get(field) != wanted[field]]
    if namespaces and len(status.get("NSpid", "").split()) < 3:
        faults.append("it is in no pid namespace of its own")
    if os.geteuid() == 0 and status.get("Uid", "0").split()[0] == "0":
        faults.append("it runs as the host's root")
    if _has_ended(pidfd):  # only after reading: then the pid cannot have been another process
        faults.append("it has ended")
    if faults:
        raise SandboxError(f"a session is not locked down: {', '.join(faults)}; nothing was run. Try `doctor`.")


def _wanted(*, namespaces: bool, seccomp: bool) -> dict[str, str]:
    # an ordinary user without a user namespace cannot empty the bounding set, nor use it under NoNewPrivs
    emptied = (*_CAPABILITY_SETS, "CapBnd") if namespaces or os.geteuid() == 0 else _CAPABILITY_SETS
    return {"Seccomp": "2" if seccomp else "0", "NoNewPrivs": "1", **dict.fromkeys(emptied, "0" * 16)}


def _status_of(pidfd: int) -> dict[str, str]:
    try:
        pid = int(_fields(f"/proc/self/fdinfo/{pidfd}")["Pid"])
        return _fields(f"/proc/{pid}/status")
    except (OSError, KeyError, ValueError) as error:
        raise SandboxError(f"a session cannot be checked through /proc: {error}; nothing was run") from error


def _fields(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8", errors="replace") as lines:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
