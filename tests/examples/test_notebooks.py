"""The notebooks of ``examples/`` run in a new workspace, one after the other, and are kept without outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
ORDER = ("images_to_dataset.ipynb", "dataset_to_adapter.ipynb")


def code_cells(name: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads((FOLDER / name).read_text())["cells"] if cell["cell_type"] == "code"]


def program(name: str) -> str:
    """Its cells as plain Python: a line that begins with `!` is a command of the shell."""
    lines = "\n".join("".join(cell["source"]) for cell in code_cells(name)).splitlines()
    commands = [f"subprocess.run({line[1:]!r}, shell=True, check=True)" if line[:1] == "!" else line for line in lines]
    return "\n".join(["import subprocess", *commands])


def run(*words: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DARKROOM_")}
    environment = {**kept, "PATH": path, "MPLBACKEND": "Agg", "HF_DATASETS_CACHE": str(folder / "cache")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_there_is_no_other_notebook() -> None:
    assert {path.name for path in FOLDER.rglob("*.ipynb")} == set(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_a_notebook_has_no_outputs_and_is_short(name: str) -> None:
    cells = code_cells(name)
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    assert len(cells) <= 8


@pytest.mark.e2e
def test_the_notebooks_run_one_after_the_other(tmp_path: Path) -> None:
    run("darkroom", "new", "street", folder=tmp_path)
    workspace = tmp_path / "street"
    first, second = (run(sys.executable, "-c", program(name), folder=workspace) for name in ORDER)
    assert "samples  6 of 6 rows of the sources" in first
    assert "6 trajectories" in first
    assert "the card holds" in first
    losses = [float(word) for word in second.splitlines()[-1].split() if word.replace(".", "").isdigit()]
    assert losses[-1] < losses[0]
