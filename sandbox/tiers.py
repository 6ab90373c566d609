"""The two strengths of isolation, and how one is chosen."""

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
