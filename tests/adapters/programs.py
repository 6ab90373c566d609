"""A trainer's program, in its own environment, beside a service of the rows that it plays."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from darkroom.pipelines.records import RLRow
from tests.adapters.rollouts import Script, marker
from tests.served import served


def write_scripts(file: Path, rows: Sequence[RLRow], scripts: Sequence[Script]) -> Path:
    """Writes batches, each {row: [what marks its prompt, turns]}."""
    marks = {row.sample.sample_id: marker(row) for row in rows}
    file.write_text(json.dumps([{name: (marks[name], turns) for name, turns in script.items()} for script in scripts]))
    return file


def run_program(folder: Path, *command: Path | str, max_rounds: int = 2, **about: str) -> list[Mapping[str, Any]]:
    """The batches that a program prints, a line of JSON each, beside a service of the rows in ``folder``/prompts."""
    home = {**os.environ, "DARKROOM_HOME": str(folder / "home")}
    arguments = ("serve", str(folder / "prompts"), "--method", "thyme", "--max-rounds", str(max_rounds))
    with served("environment", *arguments, env=home) as (_, address):
        about = {"DARKROOM_ENVIRONMENT_URL": address, "HF_HUB_OFFLINE": "1", **about}
        own = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **about}
        done = subprocess.run(command, env=own, cwd=folder, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"choice"')]
