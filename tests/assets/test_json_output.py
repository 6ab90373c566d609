"""A program that reads ``--json`` gets one object and nothing else, however long the command runs and however colours
are forced: progress goes to the standard error."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from darkroom.pipelines.generation.recipes import load_recipes
from darkroom.pipelines.publishing.dataset_reader import read_rows
from darkroom.pipelines.publishing.sft_dataset import SftDataset
from darkroom.pipelines.storage.workspace import Workspace
from tests.command_lines import COMMANDS, command_of
from tests.conftest import SmallSource
from tests.pipelines.publishing.shipping import PARTITION

RUN = """
import sys
import darkroom.assets.terminal as terminal
from darkroom.assets.cli import app
terminal.LINE_SECONDS = 0.0  # as of a run that takes long: a line of progress for every row
app(sys.argv[1:])
"""
Words = Callable[[Path], list[str]]
WORDS: dict[tuple[str, ...], Words] = {
    ("annotate", "doctor"): lambda home: [],
    ("annotate", "report"): lambda home: [],
    ("annotate", "status"): lambda home: [],
    ("annotate", "users", "list"): lambda home: [],
    ("audit",): lambda home: ["crop"],
    ("explain",): lambda home: [next(read_rows([home / "datasets" / "sft" / "crop"]))["trajectory_id"]],
    ("export",): lambda home: ["crop", "--layout", "ms_swift"],
    ("policy", "check"): lambda home: [],
    ("sandbox", "doctor"): lambda home: [],
    ("sources", "check"): lambda home: [str(home / "signs" / "questions.jsonl")],
    ("sources", "list"): lambda home: [],
    ("summary",): lambda home: [],
}
SERVED = {("annotate", "doctor"), ("annotate", "report"), ("annotate", "users", "list"), ("policy", "check")}
"""Commands that ask a server, which is not there: they end with an error, and print no object."""


@pytest.fixture(scope="module")
def home(crop_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json") / "home"
    shutil.copytree(crop_home, folder)
    with Workspace.from_environment({"DARKROOM_HOME": str(folder)}) as workspace:
        SftDataset(workspace, load_recipes()["crop"], [PARTITION]).publish()
    SmallSource().write(folder / "signs")
    return folder


def test_every_command_with_json_is_run_here() -> None:
    options = {path: [name for each in command_of(path).params for name in each.opts] for path in COMMANDS}
    assert {path for path, names in options.items() if "--json" in names} == WORDS.keys()


@pytest.mark.parametrize("colours", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "colours"])
@pytest.mark.parametrize("command", WORDS, ids=" ".join)
def test_nothing_but_the_object_is_on_the_standard_output(
    home: Path, command: tuple[str, ...], colours: dict[str, str]
) -> None:
    words = [*command, *WORDS[command](home), "--json"]
    unset = {name: value for name, value in os.environ.items() if not name.startswith(("DARKROOM_", "FORCE_COLOR"))}
    environment = {**unset, **colours, "DARKROOM_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], env=environment, capture_output=True, text=True, cwd=home
    )
    if command in SERVED and done.returncode:
        assert (done.stdout, "error: " in done.stderr) == ("", True), done
        return
    assert isinstance(json.loads(done.stdout), dict | list), done
    if command == ("audit",):
        assert "rows" in done.stderr, "its progress is there"
