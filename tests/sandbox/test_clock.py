"""What a call is charged for does not depend on how busy the machine is."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from darkroom.sandbox import Limits, SandboxPool
from darkroom.sandbox.frames import Channel
from darkroom.sandbox.limits import Deadline, ProcessClock

BUSY = "print('ready', flush=True)\nwhile True: pass"
SLEEPS = "import time\nprint('ready', flush=True)\ntime.sleep(600)"

WAITS_FOR_A_THREAD = """
import threading
def work():
    while True: pass
threading.Thread(target=work).start()
print('ready', flush=True)
"""


@contextmanager
def started(code: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def one_cpu() -> Iterator[None]:
    """For this process and what it starts."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def yield_to_others(pid: int) -> None:
    """Its threads run only where nothing else does."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))


def is_interrupted(pid: int, *, within: float) -> bool:
    interrupts: list[bool] = []
    clock = ProcessClock(pid)
    deadline = Deadline(clock, Limits(seconds=0.2, wall_seconds=2 * within), lambda: interrupts.append(True))
    end = time.monotonic() + within
    while not interrupts and time.monotonic() < end:
        time.sleep(deadline())
    clock.close()
    return bool(interrupts)


def test_a_wait_for_a_cpu_that_is_not_over_yet_is_not_charged() -> None:
    with one_cpu(), started(BUSY) as waits, started(BUSY):
        yield_to_others(waits)
        assert not is_interrupted(waits, within=1)


def test_a_wait_for_a_thread_that_waits_for_a_cpu_is_not_charged() -> None:
    with one_cpu(), started(WAITS_FOR_A_THREAD) as waits, started(BUSY):
        yield_to_others(waits)
        assert not is_interrupted(waits, within=1)


def test_code_that_sleeps_or_computes_is_charged() -> None:
    with started(SLEEPS) as sleeps:
        assert is_interrupted(sleeps, within=60)
    with started(BUSY) as computes:
        assert is_interrupted(computes, within=60)


def test_an_answer_that_has_arrived_is_in_time_however_late_it_is_read() -> None:
    def time_is_up() -> float:
        raise TimeoutError

    near, far = socket.socketpair()
    with near, far:
        far.send(b"answer")
        channel = Channel(near)
        assert channel.read(6, time_is_up) == b"answer"
        with pytest.raises(TimeoutError):
            channel.read(1, time_is_up)


def test_a_call_that_only_waited_for_a_cpu_ends_without_a_verdict(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's account is the one thing replaced: it says that the call waits more and more, as at load 100."""
    with pool.group(limits=Limits(seconds=0.2, wall_seconds=0.4)) as group, group.session() as session:
        accounts = iter(range(1, 1_000_000))
        monkeypatch.setattr(ProcessClock, "waited_seconds", lambda _clock: 0.0 + next(accounts))
        observation = session.run("import time; time.sleep(30)")
        assert (observation.status, observation.broken, session.lost) == ("killed", True, True)
        assert observation.error == "SessionEnded: this machine was too busy to run the call"


def test_a_call_that_sleeps_past_its_time_is_a_timeout(pool: SandboxPool) -> None:
    with pool.group(limits=Limits(seconds=0.2)) as group, group.session() as session:
        observation = session.run("import time; time.sleep(30)")
        assert (observation.status, session.lost) == ("timeout", False)
