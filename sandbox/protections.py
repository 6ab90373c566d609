"""The two strengths of isolation, the protections that each is made of, and what to do where the kernel refuses one."""

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal, cast, get_args

from darkroom.sandbox.errors import SandboxError

Tier = Literal["full", "lite"]
"""full: namespaces, a file system of its own, Landlock, seccomp, limits. lite: the last three only; a session can see
which files exist on the host (not what is in them), and its disk use is not limited."""

TIER_VARIABLE = "DARKROOM_SANDBOX_TIER"


def choose_tier(tier: str | None) -> Tier:
    """The argument, else the environment, else full; never less than was asked for."""
    chosen = tier or os.environ.get(TIER_VARIABLE) or "full"
    if chosen not in get_args(Tier):
        place = "--tier (in Python: tier)" if tier else TIER_VARIABLE
        raise SandboxError(f"{chosen!r} is no tier of the sandbox: set {place} to one of {', '.join(get_args(Tier))}")
    return cast(Tier, chosen)


CGROUP_VARIABLE = "DARKROOM_SANDBOX_CGROUP"
DELEGATED_CGROUPS = "delegated cgroups"
FULL_TIER_ONLY = frozenset({"user namespaces", "mount namespaces", "pid, network, ipc, uts and cgroup namespaces"})
LIBRARIES_OF_EXTRAS = "libraries of extras"
OPTIONAL = frozenset({DELEGATED_CGROUPS, LIBRARIES_OF_EXTRAS})
"""Used where they are there; no tier needs them."""


def remedy(protection: str) -> str:
    remedies = _remedies()
    return remedies.get(protection, remedies["a working start"]).format_map(remedies)


@cache
def _remedies() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8"))


def advice(protection: str, reason: str, tier: Tier) -> str:
    """Say what is missing, why, and what to do; one message for the exception and the doctor."""
    message = f"the {tier} tier of the sandbox needs {protection}, which failed: {reason}. To do: {remedy(protection)}"
    if tier == "full" and protection in FULL_TIER_ONLY:
        message += f"; or accept the weaker tier by {TIER_VARIABLE}=lite (its limits: docs/sandbox_security.md)"
    return message
