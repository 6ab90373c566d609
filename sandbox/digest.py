"""One digest for all that determines what code observes in the sandbox, for the ledger."""

import hashlib
import json
import platform
from dataclasses import asdict
from functools import cache
from pathlib import Path

from sandbox._guest.config import RepairMode
from sandbox._guest.scan import ScanMode
from sandbox.libraries import added_libraries, library_versions
from sandbox.limits import Limits
from sandbox.protections import Tier, choose_tier

_PACKAGE = Path(__file__).parent


def sandbox_digest(
    limits: Limits | None = None,
    *,
    tier: Tier | None = None,
    scan: ScanMode = "strict",
    repair: RepairMode = "small_model",
) -> str:
    """Hex digest of the guest's sources, versions of what it can import, the machine type, the limits, tier and modes.

    The same on every machine where these are the same: no path and no time goes in.
    """
    determinants = {
        "sources": _source_digests(),
        "libraries": library_versions(added_libraries()),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "limits": asdict(limits or Limits()),
        "tier": choose_tier(tier),
        "scan": scan,
        "repair": repair,
    }
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()


@cache
def _source_digests() -> dict[str, str]:
    files = [path for suffix in ("py", "toml") for path in sorted(_PACKAGE.glob(f"_*/*.{suffix}"))]
    # of the host's half, what changes what is observed
    files += [_PACKAGE / "neutral.py", _PACKAGE / "special_tokens.toml"]
    return {f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
