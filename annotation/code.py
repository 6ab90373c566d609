"""What this package's tables depend on besides their data: its own sources, and those of ``pipelines``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pipelines.digest import digest, digest_files
from pipelines.stages import code_digest


@cache
def annotation_digest() -> str:
    """Digest of the sources that decide what people are asked and what is made of their answers."""
    root = Path(__file__).parent
    paths = [path for pattern in ("*.py", "*.md", "*.jinja") for path in root.rglob(pattern)]
    return digest([code_digest(), digest_files(paths, root)])
