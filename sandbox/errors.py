"""Errors of the sandbox itself (one of the model's code is in its `Observation`), its tiers and their protections."""

import errno
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, cast, get_args


class UserError(Exception):
    """Error that a user can fix, in any package: commands print its message and exit with its status."""

    exit_status: ClassVar[int] = 1


@contextmanager
def raised_as(make: Callable[[Any], Exception], *kinds: type[Exception]) -> Iterator[None]:
    """Raise what ``make`` returns for an error of these ``kinds``, with that error as its cause."""
    try:
        yield
    except kinds as error:
        raise make(error) from error


class ExtraMissing(UserError):
    """A package of an optional extra is not installed; the message names the command that installs it."""


def require_extra(module: str, extra: str, need: str) -> None:
    """Raise ``ExtraMissing`` unless ``module`` is installed; ``need`` is the subject of the sentence."""
    if find_spec(module) is None:
        raise ExtraMissing(f"{need} needs an extra: pip install 'darkroom-toolkit[{extra}]'")


class SandboxError(Exception):
    """Every error that this package raises on purpose."""


class SandboxUnavailable(SandboxError, UserError):
    """A protection is missing; the message names it, the reason and the remedy. Nothing was started."""


class SandboxClosed(SandboxError):
    """The pool, group or session was closed, or its process ended."""


class ImageUnreadable(SandboxError):
    """An input image could not be decoded; the others of the group may be fine."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"image {index} cannot be decoded: {reason}")
        self.index, self.reason = index, reason


class InputsTooLarge(SandboxError):
    """The images and videos of a group together exceed `Limits.input_mb` or `Limits.input_pixels`."""


class ResourcesExhausted(SandboxError):
    """The machine lacked something; the same inputs may pass at another time, or with what the message asks for."""

    def __init__(self, reason: str, number: int | None = None) -> None:
        todo = remedy(errno.errorcode.get(number or 0, ""), otherwise="a busy machine")
        super().__init__(f"this machine lacks what the sandbox needs: {reason}. To do: {todo}")


def _exhausted(error: OSError | MemoryError) -> ResourcesExhausted:
    return ResourcesExhausted(str(error) or "not enough memory", getattr(error, "errno", errno.ENOMEM))


machine_errors = partial(raised_as, _exhausted, OSError, MemoryError)
"""An error of the operating system, raised within, is a ResourcesExhausted that names it."""


class ProtocolViolation(SandboxError):
    """A session sent bytes that are not a reply: its call becomes `protocol`. Never leaves the package."""


Tier = Literal["full", "lite"]
"""full: namespaces, a file system of its own, Landlock, seccomp, limits. lite: the last three only; a session can see
which files exist on the host (not what is in them), and its disk use is not limited."""

TIER_VARIABLE = "DARKROOM_SANDBOX_TIER"


def choose_tier(tier: str | None) -> Tier:
    """The argument, else the environment, else full; never less than was asked for."""
    return cast(Tier, choose(tier, "tier", TIER_VARIABLE, get_args(Tier), default="full"))


def choose(given: str | None, name: str, variable: str, choices: tuple[str, ...], *, default: str) -> str:
    """The argument, else the environment, else the default. Raises SandboxError for what is no choice."""
    if (chosen := given or os.environ.get(variable) or default) not in choices:
        place = f"--{name} (in Python: {name})" if given else variable
        raise SandboxError(f"{chosen!r} is no {name} of the sandbox: set {place} to one of {', '.join(choices)}")
    return chosen


CGROUP_VARIABLE = "DARKROOM_SANDBOX_CGROUP"
DELEGATED_CGROUPS = "delegated cgroups"
FULL_TIER_ONLY = frozenset({"user namespaces", "mount namespaces", "pid, network, ipc, uts and cgroup namespaces"})
LIBRARIES_OF_EXTRAS = "libraries of extras"
_REMEDIES: dict[str, str] = tomllib.loads(Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8"))
OPTIONAL = frozenset({DELEGATED_CGROUPS, LIBRARIES_OF_EXTRAS})
"""Used where they are there; no tier needs them."""


def remedy(lack: str, *, otherwise: str = "a working start") -> str:
    """Tell what helps where a protection is missing, or this machine has too little (by the error number's name)."""
    return _REMEDIES.get(lack, _REMEDIES[otherwise]).format_map(_REMEDIES)


def advice(protection: str, reason: str, tier: Tier) -> str:
    """Say what is missing, why, and what to do; one message for the exception and the doctor."""
    message = f"the {tier} tier of the sandbox needs {protection}, which failed: {reason}. To do: {remedy(protection)}"
    if tier == "full" and protection in FULL_TIER_ONLY:
        message += f"; or accept the weaker tier by {TIER_VARIABLE}=lite (its limits: docs/sandbox_security.md)"
    return message
