"""What the host sees of processes that it holds by a pidfd."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from darkroom.sandbox import process
from darkroom.sandbox.process import END_MILLISECONDS, has_ended, is_doomed, pid_of, proc_fields


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        held = os.pidfd_open(process.pid)
        yield held
        process.kill()
    os.close(held)


def test_a_living_process_is_not_doomed(child: int) -> None:
    assert not is_doomed(child)
    assert not has_ended(child)


def test_a_process_that_has_ended_is_doomed(child: int) -> None:
    signal.pidfd_send_signal(child, signal.SIGKILL)
    assert has_ended(child, within_milliseconds=END_MILLISECONDS)
    assert is_doomed(child)


@pytest.mark.parametrize("field", ["SigPnd", "ShdPnd"])
@pytest.mark.parametrize(("pending", "doomed"), [(signal.SIGKILL, True), (signal.SIGTERM, False)])
def test_a_process_for_which_a_kill_is_waiting_is_doomed(
    child: int, monkeypatch: pytest.MonkeyPatch, field: str, pending: signal.Signals, doomed: bool
) -> None:
    """The moment is too short to be met: what /proc says in it is given."""
    said = proc_fields(f"/proc/{pid_of(child)}/status") | {field: f"{1 << (pending - 1):016x}"}
    monkeypatch.setattr(process, "proc_fields", lambda path: said if path.endswith("/status") else proc_fields(path))
    assert is_doomed(child) == doomed
    assert not has_ended(child)
