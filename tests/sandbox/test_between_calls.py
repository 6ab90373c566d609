"""What one call leaves armed or replaced in its process is gone in the next; what is Python's stays."""

import time

import pytest

from darkroom.sandbox import Session

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


def test_what_is_pythons_stays(session: Session) -> None:
    code = "import os, random, sys\nx = 1\nos.environ['A'] = 'b'\nrandom.seed(3)\nsys.path.append('z')\n"
    session.run(code + "np.set_printoptions(precision=2)\nplt.rcParams['font.size'] = 5")
    seen = session.run("print(x, os.environ['A'], sys.path[-1], np.array([1 / 3]), plt.rcParams['font.size'])")
    assert seen.text == "1 b z [0.33] 5.0\n"
