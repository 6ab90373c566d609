"""docs/tutorial.md, followed as it stands: its photographs, its commands in order, in a folder of their own."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
EXPECTED = (
    ("ingest", "26 rows: 25 samples, 1 rejects"),
    ("materialize", "24    24        24       24   100%"),
    ("explain", "the target fills 35.4% of the"),
    ("gallery", "24 trajectories, 1 rejects"),
    ("audit", "0 findings"),
    ("audit", "21 rows, all conform"),
    ("inspect-mask", "⟧"),
    ("evaluate", "data/evaluations/grpo/report.html"),
)
"""Command and what it prints, as the page says."""


@pytest.mark.timeout(1800)
def test_following_the_tutorial_gives_a_dataset_and_checkpoints(
    tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    [photographs] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "make_photos.py").write_text(photographs)
    environment = {name: value for name, value in clean_environment.items() if not name.endswith("_HOME")}
    printed: dict[str, str] = {}
    for line in re.findall(r"^(?:darkroom|python) .+$", PAGE, re.MULTILINE):
        command = shlex.split(line)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        printed[command[1]] = printed.get(command[1], "") + done.stdout
    assert [text for name, text in EXPECTED if text not in printed[name]] == []
    for path in ("views/crop.html", "checkpoints/sft/model.safetensors", "evaluations/grpo/report.html"):
        assert (tmp_path / "data" / path).stat().st_size > 0, path
