"""The tree of processes has a life of its own: signals to the host's group are the host's."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
HOST = """
    import select, signal, sys
    from darkroom.sandbox import SandboxPool
    signals = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]
    for number in signals:
        signal.signal(number, lambda number, _: print(number, flush=True))
    with SandboxPool(tier="full") as pool, pool.group() as group, group.session() as session:
        session.run("import threading; ended = threading.Event()")
        print("ready", pool.pid, flush=True)
        # Polls: Python handles a signal that comes just before a read blocks only after that read.
        while not select.select([sys.stdin], [], [], 0.1)[0]: pass
        observation = session.run("import time; time.sleep(0.2); print('lives')")
        print(observation.status, observation.error, observation.text.strip(), flush=True)
"""
INTERRUPTED = """
    import signal, threading, time
    from darkroom.sandbox import SandboxPool
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs the tests in the background
    def tell():
        while not pool.stats().running: time.sleep(0.01)
        time.sleep(0.2)
        print("calls", flush=True)
    with SandboxPool(tier="full") as pool, pool.group() as group, group.session() as session:
        session.run("kept = 1")
        print("ready", pool.pid, flush=True)
        threading.Thread(target=tell).start()
        try:
            session.run("import time; time.sleep(60)")
        except KeyboardInterrupt:
            print("interrupted", session.alive, session.lost, flush=True)
        print(session.run("print('late')").status, flush=True)
        with group.session() as another:
            print(another.run("print('lives')").text.strip(), flush=True)
"""


def start_host(code: str) -> subprocess.Popen[str]:
    """In a process group of its own, as a shell starts a job."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
        text=True,
    )


@pytest.mark.parametrize("whom", ["group", "launcher"])
def test_signals_of_a_terminal_or_a_scheduler_reach_the_host_alone(full_tier: None, whom: str) -> None:
    with start_host(HOST) as host:
        assert host.stdout is not None
        ready, launcher = host.stdout.readline().split()
        assert (ready, os.getpgid(host.pid)) == ("ready", host.pid)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            if whom == "group":
                os.killpg(host.pid, number)
                assert int(host.stdout.readline()) == number
            else:
                os.kill(int(launcher), number)
        out, _ = host.communicate("go on\n", timeout=300)
    assert (out, host.returncode) == ("ok None lives\n", 0)


def test_ctrl_c_interrupts_the_host_and_is_never_the_codes_own_error(full_tier: None) -> None:
    with start_host(INTERRUPTED) as host:
        assert host.stdout is not None
        launcher = int(host.stdout.readline().split()[1])
        assert host.stdout.readline() == "calls\n"
        os.killpg(host.pid, signal.SIGINT)
        out, _ = host.communicate(timeout=300)
    assert out.splitlines() == ["interrupted False False", "killed", "lives"]
    assert not Path(f"/proc/{launcher}").exists()
