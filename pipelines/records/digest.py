"""Digests: one canonical form for everything that is keyed by content."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def canonical(value: Any) -> str:
    """``value`` as canonical JSON (sorted keys, no spaces). Raises ``TypeError`` for what JSON cannot hold and
    ``ValueError`` for NaN and infinities: neither has one spelling."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """sha256 of ``value`` as canonical JSON in UTF-8. Raises what ``canonical`` raises."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def digest_bytes(data: bytes) -> str:
    """sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest_files(paths: Iterable[Path], root: Path) -> str:
    """sha256 over the names (relative to ``root``) and contents of files, in the order of their names."""
    by_name = sorted((path.relative_to(root).as_posix(), path) for path in paths)
    return digest([[name, digest_bytes(path.read_bytes())] for name, path in by_name])


def seed_from(*parts: str | int) -> int:
    """A 31-bit seed that depends on nothing but ``parts``."""
    return int(digest(list(parts))[:8], 16) & 0x7FFFFFFF


def key64(text: str) -> int:
    """64 bits that stand for ``text`` where millions are compared; that two of a million share one: 1 in 40 million."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
