"""One digest for all that determines what code observes in the sandbox, for the ledger, and the libraries in it: nine,
those that DARKROOM_SANDBOX_LIBRARIES adds, and what these require. All others are hidden."""

import hashlib
import json
import os
import platform
import re
import tomllib
from contextlib import suppress
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import cast, get_args

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from darkroom.sandbox._guest.messages import RepairMode, ScanMode
from darkroom.sandbox.errors import SandboxError, Tier, choose, choose_tier
from darkroom.sandbox.limits import EchoMode, Limits

LIBRARIES_VARIABLE = "DARKROOM_SANDBOX_LIBRARIES"
ECHO_VARIABLE = "DARKROOM_SANDBOX_ECHO"
_LIBRARIES: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("libraries.toml").read_text("utf-8"))
NINE, IN_EXTRAS = _LIBRARIES["modules"], _LIBRARIES["extras"]
"""Distributions and what the code imports of them; those that an extra brings, by its name."""


def added_libraries() -> tuple[str, ...]:
    """The distributions that the setting adds, sorted. Raises SandboxError for one that is not installed."""
    names = tuple(sorted({*map(canonicalize_name, re.split(r"[\s,]+", os.environ.get(LIBRARIES_VARIABLE, "")))} - {""}))
    for name in names:
        if _installed(name) is None:
            raise SandboxError(
                f"{LIBRARIES_VARIABLE} names {name!r}, which is not installed: install it beside Darkroom"
            )
    return names


@cache
def library_versions(added: tuple[str, ...]) -> dict[str, str | None]:
    """The version of every distribution whose modules the code can import; None for one that is not installed."""
    versions: dict[str, str | None] = dict.fromkeys((*NINE, *added))
    waiting = list(versions)
    for name in waiting:  # which grows
        if (installed := _installed(name)) is None:
            continue
        versions[name] = installed.version
        for requirement in map(Requirement, installed.requires or ()):
            needed = canonicalize_name(requirement.name)
            is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if is_needed and needed not in versions:
                versions[needed] = None
                waiting.append(needed)
    return versions


@cache
def importable_modules(added: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Top-level modules: those to tell the code of, and all that it can import."""
    listed = [module for name, module in NINE.items() if name not in IN_EXTRAS or _installed(name)]
    listed += [module for name in added for module in _modules(name)]
    return listed, sorted({*listed, *(module for name in library_versions(added) for module in _modules(name))})


def _installed(name: str) -> Distribution | None:
    with suppress(PackageNotFoundError, ValueError):
        return distribution(name)
    return None


def _modules(name: str) -> list[str]:
    if (installed := _installed(name)) is None:
        return []
    if top_level := installed.read_text("top_level.txt"):
        return top_level.split()
    tops = {path.parts[0] for path in installed.files or ()}
    names = {top.partition(".")[0] for top in tops if not top.endswith((".libs", "-info", ".pth"))}
    return sorted(name for name in names if name.isidentifier())


def choose_echo(echo: str | None) -> EchoMode:
    """The argument, else the environment, else last."""
    return cast(EchoMode, choose(echo, "echo", ECHO_VARIABLE, get_args(EchoMode), default="last"))


_PACKAGE = Path(__file__).parent


def sandbox_digest(
    limits: Limits | None = None,
    *,
    tier: Tier | None = None,
    scan: ScanMode = "strict",
    repair: RepairMode = "small_model",
    echo: str | None = None,
) -> str:
    """Hex digest of the guest's sources, versions of what it can import, the machine type, the limits, tier and modes.
    The same on every machine where these are the same: no path and no time goes in."""
    determinants = {
        "sources": _source_digests(),
        "libraries": library_versions(added_libraries()),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "limits": vars(limits or Limits()),
        "tier": choose_tier(tier),
        "scan": scan,
        "repair": repair,
        "echo": choose_echo(echo),
    }
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()


@cache
def _source_digests() -> dict[str, str]:
    files = [path for suffix in ("py", "toml", "ttf") for path in sorted(_PACKAGE.glob(f"_*/**/*.{suffix}"))]
    # of the host's half, what changes what is observed
    files += [_PACKAGE / "neutral.py", _PACKAGE / "special_tokens.toml"]
    return {f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
