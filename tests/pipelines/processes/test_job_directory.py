"""The folder between a program and whoever started it: its last words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from darkroom.pipelines.processes.supervisor import VARIABLE, JobDirectory
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import guarded
from tests.waiting import wait_until

ENDLESS = """
import os, pathlib, time
from darkroom.train.runs.command_line import guarded
with guarded():
    pathlib.Path(os.environ["DARKROOM_EXCHANGE"], "begun").touch()
    time.sleep(600)
"""


@pytest.fixture
def exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobDirectory:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return JobDirectory(tmp_path)


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", ENDLESS], env=dict(os.environ))


def test_an_error_is_left_for_whoever_started_the_program(exchange: JobDirectory) -> None:
    with pytest.raises(TrainError), guarded():
        raise TrainError("no dataset folder")
    assert exchange.last_words() == "no dataset folder"


def test_an_error_of_ours_is_left_with_its_kind(exchange: JobDirectory) -> None:
    with pytest.raises(ZeroDivisionError), guarded():
        raise ZeroDivisionError("division by zero")
    assert exchange.last_words() == "ZeroDivisionError: division by zero"


def test_a_program_that_ends_well_leaves_no_words(exchange: JobDirectory) -> None:
    with guarded():
        pass
    assert exchange.last_words() == ""


def test_a_program_that_is_told_to_end_says_so(exchange: JobDirectory) -> None:
    with started() as program:
        wait_until(lambda: (exchange.folder / "begun").exists())
        program.terminate()
        assert program.wait(120) == 128 + 15
    assert exchange.last_words() == "it was told to end (SIGTERM)"


def test_a_program_that_nobody_launched_writes_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TrainError), guarded():
        raise TrainError("no dataset folder")
    assert list(tmp_path.iterdir()) == []
