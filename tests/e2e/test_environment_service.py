"""``darkroom environment serve`` grades for trainers that have ``reward.py`` and no Darkroom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.pipelines.publishing.layouts.exporter import REWARD
from darkroom.pipelines.records import to_row
from tests.adapters.rollouts import write_rows
from tests.pipelines.publishing.layouts.rl_rows import WRONG
from tests.served import served

pytestmark = pytest.mark.e2e
PROGRAM = f"""
import json, sys
sys.path.insert(0, {str(REWARD.parent)!r})
import reward
assert not reward.has_toolkit()
for line in sys.stdin:
    answer, truth = json.loads(line)
    print(reward.score(f"<answer>{{answer}}</answer>", truth))
"""


def test_rewards_of_every_kind_come_over_the_url(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "prompts")
    truths = [
        {
            **{name: getattr(row.sample, name) for name in ("question", "answer", "choices")},
            "grader": to_row(row.grader),
        }
        for row in rows
    ]
    right = [(row.sample.answer, truth) for row, truth in zip(rows, truths, strict=True)]
    wrong = [(WRONG[row.sample.sample_id], truth) for row, truth in zip(rows, truths, strict=True)]
    lines = "\n".join(json.dumps(pair) for pair in (*right, *wrong))
    home = {**os.environ, "DARKROOM_HOME": str(tmp_path / "home")}
    with served("environment", "serve", str(tmp_path / "prompts"), "--method", "thyme", env=home) as (_, address):
        own, command = {"DARKROOM_ENVIRONMENT_URL": address}, [sys.executable, "-I", "-S", "-c", PROGRAM]
        done = subprocess.run(command, input=lines, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["1.0"] * len(rows) + ["0.0"] * len(rows)
