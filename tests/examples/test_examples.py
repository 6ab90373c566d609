"""Every program in ``examples/`` runs as its docstring says, and is short enough to be read at a glance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SmallSource

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Five images with a sign, and questions about them."""
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = []
    for number, row in enumerate(list(SmallSource().rows(0))[:5]):
        (folder / f"{number}.jpg").write_bytes(row.images[0])
        boxes = [list(box.box) for box in row.truth.boxes]
        lines.append({"image": f"{number}.jpg", "question": row.question, "answer": row.answer, "boxes": boxes})
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def run(name: str, *arguments: Path | str, cwd: Path) -> str:
    """What the example prints."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_code_runs_in_the_sandbox_and_its_images_are_saved(photos: Path, tmp_path: Path) -> None:
    output = run("run_code.py", photos / "0.jpg", tmp_path / "shown", cwd=tmp_path)
    assert "round 1: ok: 640 480" in output
    assert (tmp_path / "shown" / "round_2.png").exists()
    assert "round 3: error" in output
    assert "round 4: timeout" in output


def test_answers_are_graded(tmp_path: Path) -> None:
    output = run("grade_answers.py", cwd=tmp_path)
    verdicts = [line.split()[0] for line in output.splitlines() if line.startswith("  ")]
    assert "".join(verdict[0] for verdict in verdicts) == "rwwwrrwrww"


def test_a_policy_of_ones_own_thinks_with_an_image(photos: Path, tmp_path: Path) -> None:
    output = run("own_policy.py", photos / "0.jpg", cwd=tmp_path)
    assert "-> ok, 1 image" in output
    assert output.endswith("answer: open\n")


def test_images_become_a_dataset_that_is_read_without_darkroom(photos: Path, tmp_path: Path) -> None:
    output = run("images_to_dataset.py", photos, cwd=tmp_path)
    assert "4 in, 4 out" in output
    folder = output.rsplit("dataset: ", 1)[1].strip()
    shown = run("read_dataset.py", folder, tmp_path / "row", cwd=tmp_path)
    assert shown.startswith("4 rows; the first: What does sign number")
    n_looks = len(list((tmp_path / "row").glob("*.png"))) - 1
    assert n_looks in (1, 2)  # some rows look too wide at first


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_and_tested(example: Path) -> None:
    assert len(example.read_text().splitlines()) <= 60
    tests = [path.read_text() for path in Path(__file__).parent.glob("*.py")]
    assert any(example.name in text for text in tests)
