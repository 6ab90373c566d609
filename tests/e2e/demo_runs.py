"""The demo, run as a user runs it in a folder of its own, and what it left there."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DARKROOM_", "DAGSTER_"))}
    return {**kept, "DARKROOM_HOME": str(home), "COLUMNS": "160"}


def command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("darkroom")), "demo", *arguments]


def demo(root: Path, home: Path, *arguments: str) -> str:
    """Runs the demo to its end; where it takes too long, nothing of it is left."""
    with subprocess.Popen(
        command(*arguments) if arguments else ["make", "demo"],
        cwd=root,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=3000)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, said[-6000:]
    return said


def digests(home: Path, *folders: str) -> dict[str, str]:
    files = [
        path
        for folder in folders
        for path in sorted((home / folder).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    ]
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def ledger(home: Path) -> dict[str, str]:
    """When each act was made, by key."""
    if not (home / "ledger.sqlite").exists():
        return {}
    with sqlite3.connect(home / "ledger.sqlite") as connection:
        return dict(connection.execute("SELECT key, made_at FROM acts"))
