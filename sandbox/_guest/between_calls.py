"""Takes back what a call leaves armed in its process, so that a policy may write as long as it likes.

Python's state stays, as in a notebook; docs/sandbox_code.md lists what is taken back before the session answers.

A call ends when its threads end, as a program does. One that outlives it (a daemon, or after an error) computes only
while a later call runs, and what it prints is dropped.
"""

import _locale
import _signal  # type: ignore[import-not-found]
import builtins
import faulthandler
import os
import sys
import threading
from concurrent.futures import thread as pools
from multiprocessing.dummy import DummyProcess
from typing import Any

from darkroom.sandbox._guest.messages import INTERRUPT

_TIMERS = (_signal.ITIMER_REAL, _signal.ITIMER_VIRTUAL, _signal.ITIMER_PROF)
_MAX_ATTEMPTS = 64
_UMASK = 0o077


class Baseline:
    """The state of a process to which every call's end returns: made in the group, set in each session."""

    def __init__(self) -> None:
        self._builtins, self._are_named = dict(vars(builtins)), False
        self.set()

    def set(self) -> None:
        self._recursion, self._folder = sys.getrecursionlimit(), os.getcwd()
        self._locale = _locale.setlocale(_locale.LC_ALL)
        numbers = _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP, INTERRUPT}
        self._handlers = {number: _signal.getsignal(number) for number in sorted(numbers)}

    def restore(self, code: str) -> None:
        """Return to it after this code. A handler that it armed may raise meanwhile, as often as it was armed."""
        for attempt in range(_MAX_ATTEMPTS):
            try:
                self._restore()
                self._are_named |= "builtins" in code
                if self._are_named:  # else they are as they were, and to look at all would copy a page for each
                    vars(builtins).update(self._builtins)
                return
            except BaseException:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise

    def _restore(self) -> None:
        for timer in _TIMERS:
            _signal.setitimer(timer, 0)
        for number, handler in self._handlers.items():
            if _signal.getsignal(number) is not handler and handler is not None:
                _signal.signal(number, handler)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        for stop in (sys.settrace, sys.setprofile, threading.settrace, threading.setprofile):
            stop(None)
        faulthandler.cancel_dump_traceback_later()
        if not _is_below(self._folder):
            os.chdir(self._folder)
        os.umask(_UMASK)
        if _locale.setlocale(_locale.LC_ALL) != self._locale:
            _locale.setlocale(_locale.LC_ALL, self._locale)
        if sys.getrecursionlimit() < self._recursion:
            sys.setrecursionlimit(self._recursion)


def _is_below(folder: str) -> bool:
    try:
        return f"{os.getcwd()}/".startswith(f"{folder}/")
    except OSError:  # the code has removed it
        return False


def wait_for_threads(late: frozenset[threading.Thread]) -> None:
    """Wait for the threads that this call started, but daemons and those that wait for work in a pool."""
    for thread in outlived() - late:
        if not thread.daemon:
            thread.join()


def outlived() -> frozenset[threading.Thread]:
    """The threads of the code that run, without those of pools."""
    if threading.active_count() == 1:
        return frozenset()
    workers: Any = pools._threads_queues
    main = threading.main_thread()
    every = threading.enumerate()
    return frozenset(t for t in every if t is not main and t not in workers and not isinstance(t, DummyProcess))
