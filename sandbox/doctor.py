"""Says which protections this machine gives, which tier can run, and how to get what is missing."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sandbox.process import BOOTSTRAP, LIBRARIES
from sandbox.protections import FULL_TIER_ONLY, remedy
from sandbox.tiers import Tier

_PROBE_SECONDS = 60
_PROBE = BOOTSTRAP + "from sandbox._guest.probe import main; main()"


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
        """The tiers that need it."""
        return ("full",) if self.protection in FULL_TIER_ONLY else ("full", "lite")


def diagnose() -> list[Finding]:
    """Try every protection, in processes of their own. Takes less than a second."""
    if not sys.platform.startswith("linux"):
        return [Finding("Linux", f"this is {sys.platform}")]
    return [*_kernel_findings(), _library_finding()]


def can_run(tier: Tier, findings: list[Finding]) -> bool:
    return all(finding.works for finding in findings if tier in finding.tiers)


def _kernel_findings() -> list[Finding]:
    command = [sys.executable, "-s", "-P", "-c", _PROBE, str(Path(__file__).parent)]
    probe = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    if probe.returncode != 0:
        return [Finding("a working start", probe.stderr[-500:].strip() or f"the probe ended with {probe.returncode}")]
    reasons: dict[str, str | None] = json.loads(probe.stdout)
    return [Finding(protection, reason) for protection, reason in reasons.items()]


def _library_finding() -> Finding:
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    return Finding("warm libraries", f"not installed: {', '.join(missing)}" if missing else None)
