"""What one call leaves armed or replaced in its process is gone in the next; what is Python's stays."""

import os
import time

import pytest

from darkroom.sandbox import Session
from darkroom.sandbox._guest.messages import HEADER, next_frame

ALARM = "import signal\ndef late(*_): raise ValueError('late')\nsignal.signal(signal.SIGALRM, late)\n"
ARMED = {
    "alarm": ALARM + "signal.alarm(1)",
    "timer": ALARM + "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.01)",
    "own_time": "import signal\nsignal.setitimer(signal.ITIMER_PROF, 0.05)",
    "mask": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})",
    "trace": "import sys\nsys.setprofile(lambda *_: None)\nsys.settrace(lambda *_: None)",
    "builtins": "import builtins\nbuiltins.len = builtins.print = builtins.isinstance = None",
    "json": "json.dumps = json.loads = os.scandir = os.listdir = None",
    "locale": "import locale\nlocale.setlocale(locale.LC_ALL, 'C')",
    "umask": "os.umask(0o777)",
    "recursion": "import sys\nsys.setrecursionlimit(60)",
    "watchdog": "import faulthandler\nfaulthandler.dump_traceback_later(0.2, exit=True)",
}


@pytest.mark.parametrize("name", ARMED)
def test_the_next_call_does_not_know(session: Session, name: str) -> None:
    assert session.run(ARMED[name] + ";").status in ("ok", "error")
    time.sleep(1.2 if name == "alarm" else 0.3)
    code = "x = sum(range(2_000_000))\nopen('ä.txt', 'w').write('ä')\nprint(len('abc'), x, open('ä.txt').read())"
    observation = session.run(code)
    assert (observation.status, observation.text) == ("ok", "3 1999999000000 ä\n"), observation.error
    check = "import signal, sys\nprint(signal.getsignal(signal.SIGALRM), signal.pthread_sigmask(0, ()), sys.gettrace())"
    assert session.run(check).text == "0 set() None\n" or name == "json"


def test_a_handler_that_raises_for_ever_decides_no_later_call(session: Session) -> None:
    code = ALARM + "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nwhile True: pass"
    assert (session.run(code).error or "").startswith("ValueError: late")
    assert session.run("print(1)").text == "1\n"


def test_builtins_that_an_earlier_function_replaces_are_taken_back(session: Session) -> None:
    session.run("def f():\n    import builtins\n    builtins.len = builtins.isinstance = None")
    assert not session.run("f()").broken
    assert session.run("print(len('abc'))").text == "3\n"


def test_a_thread_of_a_call_that_failed_holds_no_later_one(session: Session) -> None:
    endless = "import threading, time\ndef f():\n    while True: time.sleep(0.1)\nthreading.Thread(target=f).start()\n"
    assert session.run(endless + "1 / 0").status == "error"
    observation = session.run("print(1)")
    assert (observation.status, observation.text) == ("ok", "1\n")


def test_the_wait_for_a_frame_outlives_a_handler_and_ends_with_its_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, HEADER.pack(7, 3) + b"abc")
    read, raised = os.read, iter([TimeoutError("late"), ValueError("later")])

    def interrupted(fd: int, length: int) -> bytes:
        for error in raised:
            raise error
        return read(fd, length)

    monkeypatch.setattr(os, "read", interrupted)
    assert next_frame(reading) == (7, b"abc")
    os.close(reading)
    os.close(writing)
    with pytest.raises(OSError, match="Bad file descriptor"):
        next_frame(reading)


def test_what_is_pythons_stays(session: Session) -> None:
    code = "import os, random, sys\nx = 1\nos.environ['A'] = 'b'\nrandom.seed(3)\nsys.path.append('z')\n"
    session.run(code + "np.set_printoptions(precision=2)\nplt.rcParams['font.size'] = 5")
    seen = session.run("print(x, os.environ['A'], sys.path[-1], np.array([1 / 3]), plt.rcParams['font.size'])")
    assert seen.text == "1 b z [0.33] 5.0\n"
