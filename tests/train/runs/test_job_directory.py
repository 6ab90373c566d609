"""The folder between a program and whoever started it: last words, signs of life, a wish to stop."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import guarded
from darkroom.train.runs.supervisor import VARIABLE, JobDirectory

ENDLESS = "import time\nfrom darkroom.train.runs.command_line import guarded\nwith guarded():\n    time.sleep(600)"


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


def test_what_follows_the_program_gives_no_signs_of_life(exchange: JobDirectory) -> None:
    with guarded():
        (heartbeat,) = [thread for thread in threading.enumerate() if thread.name == "exchange"]
    heartbeat.join(60)
    assert not heartbeat.is_alive()


def test_signs_of_life_go_on_until_the_program_is_told_to_stop(exchange: JobDirectory) -> None:
    with started() as program:
        seen: set[str] = set()
        deadline = time.monotonic() + 120
        while len(seen) < 2 and time.monotonic() < deadline:
            seen |= {exchange.alive.read_text()} if exchange.alive.exists() else set()
            time.sleep(0.2)
        assert len(seen - {""}) >= 2
        exchange.stop.touch()
        assert program.wait(120) == 128 + 15
    assert exchange.last_words() == "it was told to end (SIGTERM)"


def test_a_program_that_starts_after_it_was_told_to_stop_does_nothing(exchange: JobDirectory) -> None:
    exchange.stop.touch()
    code = "from darkroom.train.runs.command_line import guarded\nwith guarded():\n    print('at work')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + 15, b"", b"")
    assert exchange.last_words() == "it was told to end (SIGTERM)"
    assert not exchange.alive.exists()


def test_a_program_that_nobody_launched_writes_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TrainError), guarded():
        raise TrainError("no dataset folder")
    assert list(tmp_path.iterdir()) == []
