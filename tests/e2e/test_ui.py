"""The graph in Dagster: launched by `dg launch`, seen in the real UI by a real browser."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageStat

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_definitions_check_clean(run: Run) -> None:
    done = run("dg", "check", "defs")
    assert (
        "All component YAML validated" in done.stdout + done.stderr
        or "loaded successfully" in done.stdout + done.stderr
    )


def test_dg_launch_materialises_a_partition_and_the_screenshots_show_it(
    run: Run, chromium: str, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    home = Path(clean_environment["DARKROOM_HOME"])
    run("darkroom", "home")
    run("dg", "launch", "--assets", "samples,key:crop/*", "--partition", "demo-0001")
    assert (home / "tables" / "crop" / "trajectories" / "demo-0001.parquet").exists()
    run("dg", "launch", "--assets", "sft_dataset")
    assert list((home / "datasets" / "sft" / "crop").glob("*.parquet"))
    shots = tmp_path / "shots"
    run("python", "scripts/screenshots.py", str(shots), "--partition", "demo-0001")
    for name in ("asset_graph.png", "asset_page.png", "trajectory.png"):
        with Image.open(shots / name) as image:
            assert image.width >= 1000
            assert max(ImageStat.Stat(image.convert("L")).stddev) > 10, f"{name} is blank"
