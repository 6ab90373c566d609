"""Programs that share their imports end, report and are stopped as those that are started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from darkroom.assets.clusters import programs
from darkroom.assets.clusters.programs import ChildProcess, LaunchError, PreparedProcess, job_directory, shared_imports
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

PROGRAM = "tests.assets.forked"
STARTER = f"""
import os, time
from darkroom.assets.clusters import programs
programs._LIBRARIES = ["json"]
programs.PreparedProcess().start(["{PROGRAM}", "waits"], os.environ)
time.sleep(600)
"""


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Iterator[PreparedProcess]:
    monkeypatch.setattr(programs, "_LIBRARIES", ["json"])
    process = PreparedProcess()
    with process.host:
        yield process
        process.terminate()


@contextmanager
def output_to(note: Path) -> Iterator[None]:
    """This process's output, as Dagster redirects it while a step runs."""
    own = [os.dup(descriptor) for descriptor in (1, 2)]
    with note.open("w") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    try:
        yield
    finally:
        for descriptor, before in zip((1, 2), own, strict=True):
            os.dup2(before, descriptor)
            os.close(before)


def ended(process: PreparedProcess, note: Path, *words: str, **environment: str) -> tuple[int | None, list[str]]:
    with output_to(note):
        process.start([PROGRAM, *words], {**os.environ, **environment})
        wait_until(lambda: process.poll() is not None)
    return process.poll(), note.read_text().split(maxsplit=2)


def test_each_has_its_own_words_environment_and_output(
    prepared: PreparedProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, (host, pid, said) = ended(prepared, tmp_path / "first", "says", "all of it", WORD="held")
    assert (status, said) == (0, f"{Path.cwd()} held True says all of it\nat its exit\n")
    monkeypatch.delenv("HOME")
    status, (same_host, other_pid, said) = ended(prepared, tmp_path / "next", "says")
    assert (status, said) == (0, f"{Path.cwd()} None False says\nat its exit\n")
    assert host == same_host
    assert pid != other_pid


def test_its_exit_status_is_the_programs(prepared: PreparedProcess, tmp_path: Path) -> None:
    assert ended(prepared, tmp_path / "note", "fails")[0] == 3


def test_an_error_is_on_its_standard_error(prepared: PreparedProcess, tmp_path: Path) -> None:
    assert ended(prepared, tmp_path / "note")[0] == 1
    assert (tmp_path / "note").read_text().endswith("IndexError: list index out of range\n")


def waiting(note: Path) -> list[psutil.Process]:
    """The process with the imports and the program that waits."""
    wait_until(lambda: "ready" in note.read_text())
    return [psutil.Process(int(pid)) for pid in note.read_text().split()[:2]]


def test_it_may_end_in_order(prepared: PreparedProcess, tmp_path: Path) -> None:
    with output_to(tmp_path / "note"):
        prepared.start([PROGRAM, "waits"], os.environ)
        running = waiting(tmp_path / "note")
    assert prepared.poll() is None
    prepared.terminate()
    prepared.wait(120)
    assert prepared.poll() == 7
    assert not psutil.wait_procs(running, timeout=60)[1]


def test_it_dies_with_its_supervisor(prepared: PreparedProcess, tmp_path: Path) -> None:
    with output_to(tmp_path / "note"):
        prepared.start([PROGRAM, "waits"], os.environ)
        running = waiting(tmp_path / "note")
    prepared.kill()
    assert not psutil.wait_procs(running, timeout=60)[1]
    assert prepared.poll() == -9  # as of any process


def test_it_ends_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "note"
    with note.open("w") as output, subprocess.Popen([sys.executable, "-c", STARTER], stdout=output) as starter:
        running = waiting(note)
        starter.kill()
    assert not psutil.wait_procs(running, timeout=60)[1]


def test_programs_of_train_share_imports_within_the_block_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "version", lambda _: "2.13.0+cpu")
    monkeypatch.setattr(programs, "_LIBRARIES", ["json"])
    command = [sys.executable, "-m", "darkroom.train.tiny", "--nonsense"]
    with shared_imports(), job_directory() as job, output_to(tmp_path / "note"):
        child = ChildProcess(command, job)
        assert isinstance(child._process, PreparedProcess)
        wait_until(child.has_ended)
        with pytest.raises(LaunchError, match="it ended with exit status 2"):
            child.check()
        for other in ([sys.executable, "-m", PROGRAM, "says"], command):
            started = ChildProcess(other, job)
            assert isinstance(started._process, subprocess.Popen if other != command else PreparedProcess)
            wait_until(started.has_ended)
        child.stop()
        last = ChildProcess(command, job)
        assert isinstance(last._process, subprocess.Popen)
        wait_until(last.has_ended)
    assert "No such option '--nonsense'" in (tmp_path / "note").read_text()
    assert not programs._prepared


@pytest.mark.parametrize("spec", ["torch", None])
def test_nothing_is_shared_where_torch_has_a_gpu_or_is_not_there(monkeypatch: pytest.MonkeyPatch, spec) -> None:
    monkeypatch.setattr(programs, "version", {"torch": "2.13.0"}.pop if spec else {}.__getitem__)
    monkeypatch.setattr(programs, "find_spec", lambda _: spec)
    with shared_imports():
        assert not programs._prepared


def test_libraries_that_cannot_be_imported_end_the_program_with_their_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(programs, "_LIBRARIES", ["no_such_library"])
    process = PreparedProcess()
    with process.host, output_to(tmp_path / "note"):
        process.start([PROGRAM, "says"], os.environ)
        wait_until(lambda: process.poll() is not None)
    assert process.poll() == 1
