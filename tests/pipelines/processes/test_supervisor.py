"""What is started through the lifeline ends with whoever started it, and with it all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until

STUBBORN = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
    time.sleep(600)
"""
ORDERLY = """
    import os, pathlib, signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))  # a file that nobody closes would swallow the exit
    for _ in range(6000): time.sleep(0.1)  # a signal just before a sleep is handled after it
"""


def lifeline(parent: int, code: str, note: Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "darkroom.pipelines.processes.supervisor",
        str(parent),
        sys.executable,
        "-c",
        textwrap.dedent(code),
        str(note),
    ]


def written(note: Path) -> list[psutil.Process]:
    """The processes whose ids the program wrote down."""
    wait_until(lambda: note.exists() and note.read_text())
    return [psutil.Process(int(pid)) for pid in note.read_text().split()]


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_the_commands(status: int) -> None:
    command = [
        sys.executable,
        "-m",
        "darkroom.pipelines.processes.supervisor",
        str(os.getpid()),
        sys.executable,
        "-c",
        f"exit({status})",
    ]
    assert subprocess.run(command, check=False).returncode == status


def test_a_command_that_a_signal_ended_says_which() -> None:
    code = "import os; os.kill(os.getpid(), 9)"
    command = [
        sys.executable,
        "-m",
        "darkroom.pipelines.processes.supervisor",
        str(os.getpid()),
        sys.executable,
        "-c",
        code,
    ]
    assert subprocess.run(command, check=False).returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_is_asked_to_end_and_may_do_so_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(lifeline(os.getpid(), ORDERLY, tmp_path / "note")) as process:
        written(tmp_path / "note")
        process.send_signal(number)
        assert process.wait(120) == 7


def test_what_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    with subprocess.Popen(lifeline(os.getpid(), STUBBORN, tmp_path / "note")) as process:
        started = written(tmp_path / "note")
        process.terminate()
        assert process.wait(120) == 128 + signal.SIGKILL
        assert not psutil.wait_procs(started, timeout=60)[1]


def test_a_killed_parent_takes_the_command_with_it(tmp_path: Path) -> None:
    note = tmp_path / "note"
    middle = f"""
        import os, subprocess, sys
        subprocess.Popen([{sys.executable!r}, "-m", "darkroom.pipelines.processes.supervisor", str(os.getpid()),
        *sys.argv[1:]]).wait()
    """
    command = [sys.executable, "-c", textwrap.dedent(middle), sys.executable, "-c", textwrap.dedent(ORDERLY), str(note)]
    with subprocess.Popen(command) as parent:
        started = written(note)
        parent.kill()
        assert not psutil.wait_procs(started, timeout=60)[1]


def test_a_killed_lifeline_takes_the_command_with_it(tmp_path: Path) -> None:
    with subprocess.Popen(lifeline(os.getpid(), ORDERLY, tmp_path / "note")) as process:
        started = written(tmp_path / "note")
        process.kill()
        assert not psutil.wait_procs(started, timeout=60)[1]


def test_a_command_whose_parent_is_gone_already_does_not_stay(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    note = tmp_path / "note"
    done = subprocess.run(lifeline(ended.pid, ORDERLY, note), check=False, timeout=120)
    assert done.returncode in (7, 128 + signal.SIGTERM)
