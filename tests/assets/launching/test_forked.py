"""Programs that a server forks end, report and are stopped as those that are started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from darkroom.assets.launching import forked
from darkroom.assets.launching.forked import ForkedProcess, ForkServer, begin_imports, shared_imports
from darkroom.assets.launching.jobs import Ending, LocalJob
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

PROGRAM = "tests.assets.forked"
STARTER = """
import os, sys, time
from darkroom.assets.launching.forked import ForkServer
with ForkServer() as server:
    server.start(["tests.assets.forked", "waits"], {}, int(sys.argv[1]))
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


def started(server: ForkServer, note: Path, *words: str, environment: dict[str, str] | None = None) -> ForkedProcess:
    with note.open("w") as output:
        process = server.start([PROGRAM, *words], environment or {}, output.fileno())
    assert process is not None
    return process


def waiting(note: Path) -> list[psutil.Process]:
    """The supervisor and the program that waits."""
    wait_until(lambda: "ready" in note.read_text())
    return [psutil.Process(int(pid)) for pid in note.read_text().split()[:2]]


def test_a_program_gets_words_environment_and_folder(server: ForkServer, tmp_path: Path) -> None:
    process = started(server, tmp_path / "note", "says", "all of it", environment={"WORD": "held"})
    assert process.wait(120) == process.poll() == 0
    supervisor, _, *said = (tmp_path / "note").read_text().split(maxsplit=2)
    assert int(supervisor) == process.pid
    assert said == [f"{Path.cwd()} held True says all of it\nat its exit\n"]


def test_its_exit_status_is_the_programs(server: ForkServer, tmp_path: Path) -> None:
    assert started(server, tmp_path / "note", "fails").wait(120) == 3


def test_an_error_is_on_its_standard_error(server: ForkServer, tmp_path: Path) -> None:
    assert started(server, tmp_path / "note").wait(120) == 1
    assert (tmp_path / "note").read_text().endswith("IndexError: list index out of range\n")


def test_it_may_end_in_order(server: ForkServer, tmp_path: Path) -> None:
    process = started(server, tmp_path / "note", "waits")
    running = waiting(tmp_path / "note")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    process.terminate()
    assert process.wait(120) == 7
    process.terminate()  # nothing more
    assert not psutil.wait_procs(running, timeout=60)[1]


def test_it_dies_with_its_supervisor(server: ForkServer, tmp_path: Path) -> None:
    process = started(server, tmp_path / "note", "waits")
    running = waiting(tmp_path / "note")
    process.kill()
    assert process.wait(120) == 128 + 9
    assert not psutil.wait_procs(running, timeout=60)[1]


def test_it_ends_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with note.open("w") as output:
        command = [sys.executable, "-c", STARTER, str(output.fileno())]
        starter = subprocess.Popen(command, pass_fds=[output.fileno()])
    with starter:
        running = waiting(note)
        running += psutil.Process(starter.pid).children()  # the server
        starter.kill()
    assert not psutil.wait_procs(running, timeout=60)[1]


def test_without_its_server_a_program_is_started(tmp_path: Path) -> None:
    with ForkServer() as ended:
        ended.begin()
        assert ended._process is not None
        ended._process.kill()
        ended._process.wait()
        assert ended.start([PROGRAM, "says"], {}, None) is None


def test_its_environment_is_the_starters_as_it_is_now(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setenv("WORD", "new")
    assert started(server, tmp_path / "note", "says").wait(120) == 0
    assert " new False says" in (tmp_path / "note").read_text()


def test_a_command_forks_programs_of_train_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(forked, "version", lambda _: "2.13.0+cpu")
    with shared_imports(), (tmp_path / "note").open("w") as output:
        job = LocalJob([sys.executable, "-m", "darkroom.train.tiny", "--nonsense"], {}, output=output.fileno())
        assert isinstance(job._process, ForkedProcess)
        job._process.wait(120)
        assert job.ended(closed=True) == Ending(False, "it ended with exit status 2")
        other = LocalJob([sys.executable, "-m", PROGRAM, "says"], {}, output=output.fileno())
        assert isinstance(other._process, subprocess.Popen)
        assert other._process.wait(120) == 0
    assert "No such option '--nonsense'" in (tmp_path / "note").read_text()
    assert not forked._servers


def test_without_work_nothing_is_imported() -> None:
    with ForkServer() as server:
        pass
    assert server._process is None


def test_nothing_is_forked_where_torch_has_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "version", lambda _: "2.13.0")
    with shared_imports():
        begin_imports()
        assert forked.forked([sys.executable, "-m", "darkroom.train.tiny"], dict(os.environ), None) is None
