"""The graph in Dagster: launched by `dg launch`, seen in the real UI by a real browser."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageStat

from tests.matrices import first_quickly

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("launched", first_quickly(["--assets", ""]), ids=["family", "all"])
def test_dg_launch_materialises_a_partition_and_the_screenshots_show_it(
    run: Run, root: Path, chromium: str, clean_environment: dict[str, str], photos: Path, tmp_path: Path, launched: str
) -> None:
    """With the assets of one family quickly, with the job of all of them in full."""
    home = Path(clean_environment["DARKROOM_HOME"])
    run("darkroom", "home")
    run("darkroom", "ingest", str(photos), "--questions", str(photos / "questions.jsonl"), "--boxes", "boxes")
    page = (root / "docs" / "dagster.md").read_text()
    for line in re.findall(rf"^\.venv/bin/(dg launch {launched}.+ --partition .+)", page, re.MULTILINE):
        run(*shlex.split(line))
    assert (home / "tables" / "crop" / "trajectories" / "photos-0000.parquet").exists()
    run("dg", "launch", "--assets", "sft_dataset")
    assert list((home / "datasets" / "sft" / "crop").glob("*.parquet"))
    shots = tmp_path / "shots"
    run("python", "scripts/screenshots.py", str(shots), "--partition", "photos-0000")
    for name in ("asset_graph.png", "asset_page.png", "trajectory.png"):
        with Image.open(shots / name) as image:
            assert image.width >= 1000
            assert max(ImageStat.Stat(image.convert("L")).stddev) > 10, f"{name} is blank"
