"""Files that are seen whole or not at all, whoever is killed while writing."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: bytes | str, *, mode: int = 0o644) -> None:
    """Writes ``content`` (text as UTF-8) with the permissions ``mode``, less the umask; makes the folder."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    os.replace(part, path)
