"""Processes in sessions of their own: known for good, and ended with their starter where they shall be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom.pipelines.processes.process_sessions import LeashedProcess, ProcessMark, last_lines, stop_session
from tests.waiting import wait_until

WORKER = "sleep 600 & exec sleep 600"


def test_a_process_is_marked_as_itself_only() -> None:
    own = ProcessMark.of(os.getpid())
    assert own.is_running
    assert not replace(own, start_ticks=own.start_ticks + 1).is_running
    assert not replace(own, boot="another boot").is_running


def test_a_process_of_an_earlier_boot_or_another_machine_has_no_members() -> None:
    own = ProcessMark.of(os.getpid())
    assert replace(own, boot="another").members() == []
    assert replace(own, host="gpu-7").members() == []


def test_a_process_that_was_given_the_number_later_is_never_touched() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as other:
        mark = ProcessMark.of(other.pid)
        stop_session(replace(mark, start_ticks=mark.start_ticks - 1), grace_seconds=0)
        assert other.poll() is None
        other.communicate(b"\n")


@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["PausedProcess", "LeashedProcess"])
def test_a_killed_starter_leaves_no_process(tmp_path: Path, kind: str) -> None:
    program = (
        "import os, signal, time; from pathlib import Path\n"
        f"from darkroom.pipelines.processes.process_sessions import {kind}\n"
        f"held = {kind}(['sh', '-c', {WORKER!r}], environment=dict(os.environ), log=Path({str(tmp_path / 'log')!r}))\n"
        "time.sleep(0.3); print(held.mark.pid, held.mark.start_ticks, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    pid, start_ticks = map(int, done.stdout.split())
    mark = replace(ProcessMark.of(os.getpid()), pid=pid, start_ticks=start_ticks)
    wait_until(lambda: mark.members() == [])


@pytest.mark.e2e
def test_a_leashed_process_listens_to_sigterm_whatever_its_starter_ignores(tmp_path: Path) -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    process = LeashedProcess(["sh", "-c", WORKER], environment=dict(os.environ), log=tmp_path / "log")
    for number, handler in before.items():
        signal.signal(number, handler)
    start = time.monotonic()
    process.stop(grace_seconds=60)
    assert process.mark.members() == []
    assert time.monotonic() - start < 30


def test_the_last_lines_of_a_log_are_those_with_text(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("first\n\n 10 %\r 90 %\n")
    assert last_lines(tmp_path / "log") == ["first", " 10 %", " 90 %"]
    assert last_lines(tmp_path / "none") == []
