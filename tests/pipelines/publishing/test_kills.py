"""A process that is killed while it publishes leaves the earlier dataset, or none; the next one finishes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.publishing.dataset_reader import ALL, find_datasets
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.storage.tables import TableMissing
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.publishing.shipping import PARTITION

EARLIER, LATER = 2, None
"""Rows of the earlier dataset, and all four."""
PUBLISH = """
import os, signal, sys
from itertools import count
from tests.pipelines.publishing.test_kills import LATER, publish
from darkroom.pipelines.storage.workspace import Workspace

replace, numbers = os.replace, count(1)

def replace_or_die(source, target):
    if next(numbers) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

with Workspace.from_environment({"DARKROOM_HOME": sys.argv[1]}) as workspace:
    os.replace = replace_or_die
    publish(workspace, LATER)
"""
KILLS = {
    "before the table is replaced": (2, True),
    "while shards are named": (5, True),
    "before the folder is replaced": (7, True),
    "while the folder is replaced": (8, False),
}
"""At which replacement, and whether the earlier dataset is there then. Replaced are rejects, table, four shards, the
earlier folder, the folder."""


def publish(workspace: Workspace, n_rows: int | None) -> Path:
    recipe = load_recipes()["crop"]
    return SftDataset(workspace, recipe, [PARTITION], n_rows=n_rows, shard_bytes=1).publish()[1].folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.exists() else {}


def readable(workspace: Workspace) -> list[Path]:
    try:
        return find_datasets(ALL, workspace.home / "datasets" / "sft")
    except TableMissing:
        return []


@pytest.mark.e2e
@pytest.mark.parametrize("kill", KILLS)
def test_a_kill_leaves_the_earlier_dataset_or_none_and_the_next_run_finishes(
    shipped: Path, workspace: Workspace, kill: str
) -> None:
    later = contents(publish(workspace, LATER))
    earlier = contents(publish(workspace, EARLIER))
    number, is_there = KILLS[kill]
    command = [sys.executable, "-c", PUBLISH, str(workspace.home), str(number)]
    killed = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert contents(shipped) == (earlier if is_there else {})
    assert readable(workspace) == ([shipped] if is_there else [])
    assert contents(publish(workspace, LATER)) == later
    assert [path.name for path in shipped.parent.iterdir()] == ["crop"]
