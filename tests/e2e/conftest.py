"""Everything here is marked ``e2e``: it needs Debian packages or servers, which ``make e2e`` installs and starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.screenshots import browser

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # of all folders: a path of each would take longer than the rest
        if item.nodeid.startswith("tests/e2e/"):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture
def clean_environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has set nothing, with data in a folder of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DARKROOM_", "DAGSTER_"))}
    bin_folder = str(Path(sys.executable).parent)
    return {
        **kept,
        "PATH": f"{bin_folder}{os.pathsep}{kept['PATH']}",
        "VIRTUAL_ENV": str(Path(sys.executable).parents[1]),
        "DARKROOM_HOME": str(tmp_path / "home"),
        "DAGSTER_HOME": str(tmp_path / "home" / "dagster"),
    }


@pytest.fixture
def run(root: Path, clean_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in the repository as a user would; fails with its output unless told otherwise."""

    def _run(*command: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            cwd=root,
            env={**clean_environment, **environment},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(
                f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            )
        return done

    return _run


@pytest.fixture
def photos(tmp_path: Path, small_source) -> Path:
    """A folder of a user's own images with questions."""
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = []
    for n, row in enumerate(small_source.rows(0)):
        (folder / f"{n}.jpg").write_bytes(row.images[0])
        boxes = [list(box.box) for box in row.truth.boxes]
        lines.append({"image": f"{n}.jpg", "question": row.question, "answer": row.answer, "boxes": boxes})
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed; `make e2e` installs it")
    return program


@pytest.fixture(scope="module")
def port(chromium: str) -> Iterator[int]:
    """The debugging port of a browser that the tests of a file share."""
    with browser() as found:
        yield found
