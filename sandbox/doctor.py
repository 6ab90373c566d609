"""Says which protections this machine gives, which tier can run, and how to get what is missing."""

import importlib.util
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from darkroom.sandbox.cgroups import reason_for_none
from darkroom.sandbox.digest import IN_EXTRAS, NINE
from darkroom.sandbox.errors import (
    CGROUP_VARIABLE,
    DELEGATED_CGROUPS,
    FULL_TIER_ONLY,
    LIBRARIES_OF_EXTRAS,
    OPTIONAL,
    SandboxError,
    Tier,
    remedy,
)
from darkroom.sandbox.pool import SandboxPool
from darkroom.sandbox.process import BOOTSTRAP

_PROBE_SECONDS = 60
_PROBE = BOOTSTRAP + "from darkroom.sandbox._guest.probe import main; main()"
_SESSIONS: dict[Tier, str] = {"full": "a session of the full tier", "lite": "a session of the lite tier"}


@dataclass(frozen=True)
class Finding:
    """One protection of this machine."""

    protection: str
    reason: str | None
    """Why it is missing; None where it works."""

    @property
    def works(self) -> bool:
        return self.reason is None

    @property
    def remedy(self) -> str:
        return "" if self.works else remedy(self.protection)

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers that need it; none for what is only used where it is there."""
        if self.protection in OPTIONAL:
            return ()
        if self.protection in _SESSIONS.values():
            return tuple(tier for tier, name in _SESSIONS.items() if name == self.protection)
        return ("full",) if self.protection in FULL_TIER_ONLY else ("full", "lite")


def diagnose() -> list[Finding]:
    """Try every protection, in processes of their own. Takes less than a second."""
    if not sys.platform.startswith("linux"):
        return [Finding("Linux", f"this is {sys.platform}")]
    if (probe := _run_probe()).returncode == 0:
        kernel = [Finding(protection, reason) for protection, reason in json.loads(probe.stdout)["failures"].items()]
    else:
        kernel = [Finding("a working start", probe.stderr[-500:].strip() or f"the probe ended with {probe.returncode}")]
    missing = {name for name, module in NINE.items() if importlib.util.find_spec(module) is None}
    needed, of_extras = missing - IN_EXTRAS.keys(), missing & IN_EXTRAS.keys()
    libraries = Finding("warm libraries", f"not installed: {', '.join(sorted(needed))}" if needed else None)
    wanted = ", ".join(f"{name} (pip install 'darkroom-toolkit[{IN_EXTRAS[name]}]')" for name in sorted(of_extras))
    extras = Finding(LIBRARIES_OF_EXTRAS, f"not installed: {wanted}" if wanted else None)
    reason = reason_for_none(os.environ)
    # optional, unless a folder is named: a pool refuses to start without what was asked for
    is_needed = reason and os.environ.get(CGROUP_VARIABLE)
    cgroups = Finding(CGROUP_VARIABLE if is_needed else DELEGATED_CGROUPS, reason)
    return [*kernel, libraries, extras, cgroups]


def try_sessions(findings: list[Finding]) -> list[Finding]:
    """Start a session of each tier whose protections work, and run code in it. Takes a few seconds."""
    return [Finding(name, _failure_of_session(tier)) for tier, name in _SESSIONS.items() if can_run(tier, findings)]


def _failure_of_session(tier: Tier) -> str | None:
    try:
        with SandboxPool(tier=tier) as pool, pool.group() as group, group.session() as session:
            observation = session.run("print(6 * 7)")
    except SandboxError as error:
        return str(error)
    return None if observation.text == "42\n" else f"{observation.status}: {observation.error or observation.text}"


def describe_machine() -> str:
    """Describe the machine for a report of an error: `Linux 6.12.1, x86_64, Landlock ABI 6`."""
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if not sys.platform.startswith("linux"):
        return system
    probe = _run_probe()
    return f"{system}, Landlock ABI {json.loads(probe.stdout)['landlock_abi'] if probe.returncode == 0 else 'unknown'}"


def can_run(tier: Tier, findings: list[Finding]) -> bool:
    return all(finding.works for finding in findings if tier in finding.tiers)


def _run_probe() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-s", "-P", "-c", _PROBE, str(Path(__file__).parent)]
    return subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
