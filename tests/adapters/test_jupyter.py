"""The notebooks of ``examples/`` in a Jupyter kernel, as somebody runs all their cells: what they print and show."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.conftest import ROOT, Install
from tests.examples.test_notebooks import FOLDER, ORDER

JUPYTER = ("nbclient==0.11.0", "ipykernel==7.4.0")


@pytest.fixture(scope="module")
def programs(install: Install) -> Path:
    """The folder of the programs of an environment with Jupyter and Darkroom; what it requires is this environment's.

    `darkroom` is called from there too: a kernel's ``MPLBACKEND`` names a module that this environment lacks.
    """
    python = install("jupyter", *JUPYTER, "--constraint", str(ROOT / "requirements.lock"), torch=False)
    [packages] = python.parents[1].glob("lib/python*/site-packages")
    (packages / "required.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    uv = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*uv, "--python", python, "--editable", ROOT], check=True)
    return python.parent


def executed(notebook: Path, programs: Path) -> list[dict[str, Any]]:
    """The outputs of a notebook's cells, run in its folder; the first error ends the test."""
    path = os.pathsep.join(map(str, (programs, os.environ["PATH"])))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DARKROOM_")}
    environment = {**kept, "PATH": path, "HF_DATASETS_CACHE": str(notebook.parent / "cache")}
    command = [programs / "jupyter-execute", "--inplace", "--timeout=1500", notebook.name]
    done = subprocess.run(command, cwd=notebook.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [output for cell in json.loads(notebook.read_text())["cells"] for output in cell.get("outputs", [])]


def test_the_notebooks_run_in_a_kernel_and_show_their_images(programs: Path, tmp_path: Path) -> None:
    subprocess.run([programs / "darkroom", "new", "street"], cwd=tmp_path, check=True, capture_output=True)
    images, adapter = (executed(Path(shutil.copy(FOLDER / name, tmp_path / "street")), programs) for name in ORDER)
    assert "5 trajectories" in printed(images)
    assert ["image/png" in output["data"] for output in images if "data" in output] == [True, True]
    assert "at last" in printed(adapter)
    assert "image/png" in adapter[-1]["data"]


def printed(outputs: list[dict[str, Any]]) -> str:
    return "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
