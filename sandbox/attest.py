"""The host's own look at a session before its first call: a lock that silently did nothing must not be trusted."""

import os

from sandbox.errors import SandboxError
from sandbox.pidfd import has_ended, pid_of, proc_fields

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
    if has_ended(pidfd):  # only after reading: then the pid cannot have been another process
        faults.append("it has ended")
    if faults:
        raise SandboxError(f"a session is not locked down: {', '.join(faults)}; nothing was run. Try `doctor`.")


def _wanted(*, namespaces: bool, seccomp: bool) -> dict[str, str]:
    # an ordinary user without a user namespace cannot empty the bounding set, nor use it under NoNewPrivs
    emptied = (*_CAPABILITY_SETS, "CapBnd") if namespaces or os.geteuid() == 0 else _CAPABILITY_SETS
    return {"Seccomp": "2" if seccomp else "0", "NoNewPrivs": "1", **dict.fromkeys(emptied, "0" * 16)}


def _status_of(pidfd: int) -> dict[str, str]:
    try:
        return proc_fields(f"/proc/{pid_of(pidfd)}/status")
    except OSError as error:
        raise SandboxError(f"a session cannot be checked through /proc: {error}; nothing was run") from error
