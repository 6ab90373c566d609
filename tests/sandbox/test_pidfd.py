"""What the host sees of processes that it holds by a pidfd."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import SandboxPool
from sandbox.pidfd import has_ended, is_doomed, open_parent, pid_of, wait_for_end


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        pidfd = os.pidfd_open(process.pid)
        yield pidfd
        process.kill()
    os.close(pidfd)


def test_a_living_process_is_not_doomed(child: int) -> None:
    assert not is_doomed(child)
    assert not has_ended(child)


def test_a_killed_process_is_doomed_from_the_signal_on(child: int) -> None:
    signal.pidfd_send_signal(child, signal.SIGKILL)
    assert is_doomed(child) or wait_for_end(child)  # the moment between taking the signal and ending shows neither
    assert wait_for_end(child)
    assert is_doomed(child)


def test_a_parent_is_found_while_both_live(child: int) -> None:
    parent = open_parent(child)
    assert parent is not None
    assert pid_of(parent) == os.getpid()
    os.close(parent)
    os.kill(pid_of(child), signal.SIGKILL)
    os.waitpid(pid_of(child), 0)
    assert open_parent(child) is None
    assert is_doomed(child)


def test_a_session_is_lost_when_its_group_was_killed(full_tier: None) -> None:
    with SandboxPool(tier="full") as pool, pool.group() as group, group.session() as session:
        assert session.run("print(1)").ok
        tree = Path(f"/proc/{group.pid}/task/{group.pid}/children").read_text().split()
        assert tree, "the session is a child of the group"
        os.kill(group.pid, signal.SIGKILL)
        assert session.run("import time; time.sleep(60)").status == "killed"
        assert session.lost
