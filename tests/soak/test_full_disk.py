"""A disk that is full in the middle of a build: a line says so, and the same command resumes when there is room."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

SCRIPT = """
mount -t tmpfs -o size=3m tmpfs "$DARKROOM_HOME" || exit 77
build() { "$1" -m darkroom.assets.main materialize demo --family direct --quota direct=12 >"$2" 2>&1; echo $?; }
build "$1" database.log
mount -o remount,size=9m "$DARKROOM_HOME"
build "$1" image.log
mount -o remount,size=900m "$DARKROOM_HOME"
build "$1" enough.log
"$1" -m darkroom.assets.main audit direct >audit.log 2>&1; echo $?
"""
"""In namespaces of its own, whose mounts end with it."""


def test_a_full_disk_is_a_line_and_the_build_resumes_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DARKROOM_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"this kernel lets nobody mount a small disk: {done.stderr.strip()}")
    logs = {name: Path(f"{name}.log").read_text() for name in ("database", "image", "enough", "audit")}
    assert done.stdout.split() == ["1", "1", "0", "0"], logs
    for name in ("database", "image"):
        last = logs[name].splitlines()[-1]
        assert last.startswith("error: "), last
        assert "disk" in last.partition("To do: ")[2], last
        assert "Traceback" not in logs[name]
    assert re.search(r"^direct +14 +14 +13 +12 ", logs["enough"], re.MULTILINE), logs["enough"]
