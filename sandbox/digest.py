"""One digest for all that determines what code observes in the sandbox, for the ledger."""

import hashlib
import json
import platform
from functools import cache, lru_cache
from pathlib import Path

from darkroom.sandbox._guest.messages import RepairMode
from darkroom.sandbox._guest.scan import ScanMode
from darkroom.sandbox.libraries import added_libraries, library_versions
from darkroom.sandbox.limits import Limits
from darkroom.sandbox.protections import Tier, choose_tier

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
    spelled = json.dumps(vars(limits or Limits()))
    return _digest(_source_digests(), added_libraries(), spelled, choose_tier(tier), scan, repair)


@lru_cache(maxsize=256)
def _digest(
    sources: tuple[tuple[str, str], ...],
    added: tuple[str, ...],
    limits: str,
    tier: Tier,
    scan: ScanMode,
    repair: RepairMode,
) -> str:
    """Asked for with every program that is run: to spell the sources anew takes longer than to run an empty one."""
    determinants = {
        "sources": dict(sources),
        "libraries": library_versions(added),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "limits": json.loads(limits),
        "tier": tier,
        "scan": scan,
        "repair": repair,
    }
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()


@cache
def _source_digests() -> tuple[tuple[str, str], ...]:
    files = [path for suffix in ("py", "toml") for path in sorted(_PACKAGE.glob(f"_*/*.{suffix}"))]
    # of the host's half, what changes what is observed
    files += [_PACKAGE / "neutral.py", _PACKAGE / "special_tokens.toml"]
    return tuple((f"{path.parent.name}/{path.name}", hashlib.sha256(path.read_bytes()).hexdigest()) for path in files)
