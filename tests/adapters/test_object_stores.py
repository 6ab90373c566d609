"""Homes in Google's and Azure's stores: the tests of object stores on emulators, with the clients of the extras.

gcp-storage-emulator comes from PyPI, Azurite from npm. Both are installed with the clients in a folder of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.conftest import ROOT
from tests.object_store import EMULATORS, KIND

PACKAGES = ("gcsfs==2026.10.1", "adlfs==2026.8.0", "gcp-storage-emulator==2026.7.19")
AZURITE = "azurite@3.35.0"
UNIT = tuple(
    f"tests/pipelines/{name}.py"
    for name in (
        "storage/test_places",
        "storage/test_local_copy",
        "storage/test_remote_images",
        "storage/test_remote_tables",
        "publishing/test_remote_dataset",
    )
)


@pytest.fixture(scope="session")
def emulators() -> Path:
    """What is installed beside the environment of the tests, with its versions of what they share."""
    folder = Path(os.environ.get("DARKROOM_ENVIRONMENTS", ROOT / "data" / "environments")) / "object_stores"
    if not (folder / "complete").exists():
        uv, lock = Path(sys.executable).with_name("uv"), ROOT / "requirements.lock"
        pip = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", folder, "--constraint", lock]
        subprocess.run([*pip, *PACKAGES], check=True)
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", folder, AZURITE], check=True
        )
        (folder / "complete").touch()
    return folder


@pytest.mark.parametrize("kind", ["gs", "az"])
def test_what_holds_on_s3_holds_on(kind: str, emulators: Path) -> None:
    path = os.pathsep.join([str(ROOT), str(emulators)])
    variables = {"PYTHONPATH": path, EMULATORS: str(emulators), KIND: kind}
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "3600", *UNIT, "tests/e2e/test_object_store_home.py"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
