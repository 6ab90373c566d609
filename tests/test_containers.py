"""Container files and compose files pass a linter: hadolint, and the Compose specification."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from compose_spec import PyCompose

ROOT = Path(__file__).parents[1]
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
CONTAINER_FILES = [path for path in TRACKED if path.endswith("Containerfile")]
COMPOSE_FILES = [path for path in TRACKED if path.endswith("compose.yaml")]


def test_there_are_files_to_check() -> None:
    assert CONTAINER_FILES
    assert COMPOSE_FILES


@pytest.mark.parametrize("path", CONTAINER_FILES)
def test_a_container_file_has_no_warning(path: str) -> None:
    command = [str(Path(sys.executable).with_name("hadolint")), "--no-color", path]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


@pytest.mark.parametrize("path", COMPOSE_FILES)
def test_a_compose_file_is_as_the_specification_says(path: str) -> None:
    PyCompose.from_yaml((ROOT / path).read_text()).validate()
