"""The two strengths of isolation, the protections that each is made of, and what to do where the kernel refuses one."""

import os
from typing import Literal, cast, get_args

from sandbox.errors import SandboxError

Tier = Literal["full", "lite"]
"""full: namespaces, a file system of its own, Landlock, seccomp, limits. lite: the last three only; a session can see
which files exist on the host (not what is in them), and its disk use is not limited."""

TIER_VARIABLE = "DARKROOM_SANDBOX_TIER"


def choose_tier(tier: str | None) -> Tier:
    """The argument, else the environment, else full; never less than was asked for."""
    chosen = tier or os.environ.get(TIER_VARIABLE) or "full"
    if chosen not in get_args(Tier):
        raise SandboxError(
            f"{chosen!r} is no tier of the sandbox: set {TIER_VARIABLE} to one of {', '.join(get_args(Tier))}"
        )
    return cast(Tier, chosen)


CGROUP_VARIABLE = "DARKROOM_SANDBOX_CGROUP"
DELEGATED_CGROUPS = "delegated cgroups"
_USER_NAMESPACES = (
    "allow them (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces=15000, "
    "kernel.apparmor_restrict_unprivileged_userns=0), or, in a container, start it with "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
)
# 254 is the first systemd with DelegateSubgroup, docker 28 the first with writable-cgroups
_CGROUPS = (
    "start the program in a child of a delegated cgroup, by systemd-run --user --pipe --wait --same-dir "
    "-p Delegate=yes -p DelegateSubgroup=host COMMAND (systemd 254), or by hand in systemd-run --user --scope "
    "-p Delegate=yes or docker run --security-opt writable-cgroups=true: make a folder host in the shell's own cgroup "
    "folder and write the shell's pid to its cgroup.procs before COMMAND. Or name a folder without processes, whose "
    f"cgroup.subtree_control holds memory and pids, by {CGROUP_VARIABLE}; unset it to do without"
)
_REMEDIES = {
    "Linux": "run it on Linux, in a virtual machine if need be",
    "user namespaces": _USER_NAMESPACES,
    "mount namespaces": f"{_USER_NAMESPACES} (docker: also --cap-add SYS_ADMIN)",
    "pid, network, ipc, uts and cgroup namespaces": _USER_NAMESPACES,
    "Landlock": "use Linux 5.13 or newer with `landlock` in the boot parameter lsm=",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER on a machine that sandbox/_kernel/tables.py knows",
    "pidfd": "use Linux 5.3 or newer",
    "sealed memory files": "use Linux 3.17 or newer",
    "warm libraries": "install the package with its dependencies in this environment",
    "a working start": "read the reason above",
    DELEGATED_CGROUPS: _CGROUPS,
    CGROUP_VARIABLE: _CGROUPS,
}
FULL_TIER_ONLY = frozenset({"user namespaces", "mount namespaces", "pid, network, ipc, uts and cgroup namespaces"})
OPTIONAL = frozenset({DELEGATED_CGROUPS})
"""Used where they are there; no tier needs them."""


def remedy(protection: str) -> str:
    return _REMEDIES.get(protection, _REMEDIES["a working start"])


def advice(protection: str, reason: str, tier: Tier) -> str:
    """What is missing, why, and what to do; one message for the exception and the doctor."""
    message = f"the {tier} tier of the sandbox needs {protection}, which failed: {reason}. To do: {remedy(protection)}"
    if tier == "full" and protection in FULL_TIER_ONLY:
        message += f"; or accept the weaker tier by {TIER_VARIABLE}=lite (its limits: sandbox/tiers.py)"
    return message
