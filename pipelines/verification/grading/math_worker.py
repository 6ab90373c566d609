"""math-verify in processes of its own: bounded in CPU time and memory, callable from any thread.

math-verify bounds itself by SIGALRM, which only a main thread may set, and SymPy cannot be interrupted inside one large
operation anyway. So each comparison is a fork of a warm process (``math_worker_main.py``), which ends after a number of
calls: work, not time, so that neither a busy nor a slow machine changes a verdict. What never comes to a next call (a
power of huge numbers) the kernel ends after ``CPU_SECONDS``, several times what the calls take.
"""

import atexit
import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from queue import LifoQueue

CPU_SECONDS = 5.0
"""Of one comparison; 0.01 to 0.2 s is usual."""
WALL_SECONDS = 300.0
"""After which the process itself is given up, on a machine that hangs."""
_PROGRAM = Path(__file__).with_name("math_worker_main.py")
_ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0"}  # the order of sets, and with it the work, is always the same
REMEMBERED = 8192
"""Comparisons: one answer is spelled in many ways that read the same."""


class GradingError(Exception):
    """The process that compares expressions does not answer: what was found, what to do."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """``same``: math-verify holds the two for the same. ``values``: of both, if they are real constants."""

    same: bool
    values: tuple[str | None, str | None] = (None, None)
    error: str = ""
    """Why they could not be compared."""


class MathsProcess:
    """One process for one thread at a time, started on first use and again in a forked child or after its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def compare(self, expression: str, expected: str) -> Comparison:
        """Two expressions in TeX. Raises ``GradingError`` when the process cannot be had."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"given": expression, "expected": expected}).encode() + b"\n")
            readable, _, _ = select.select([process.stdout], [], [], WALL_SECONDS)
            line = process.stdout.readline() if readable else b""
        except BrokenPipeError:
            line = b""
        if not line:
            self.close()
            mend = "run it by hand to see why (math-verify must be installed)"
            raise GradingError(f"expected an answer of {sys.executable} {_PROGRAM}, found none; {mend}")
        answer = json.loads(line)
        return Comparison(answer["same"], tuple(answer["values"]), answer["error"])

    def close(self) -> None:
        """Ends the process, if it is ours; a forked child only lets go of its parent's."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:  # closes its pipes, and waits for it if it is a child of this process
            if self._owner == os.getpid():
                process.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.close()
            # -P: the program's folder stays off sys.path
            command = [sys.executable, "-P", str(_PROGRAM), str(CPU_SECONDS)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=_ENVIRONMENT)
            self._owner = os.getpid()
        return self._process


class MathsProcesses:
    """A process for every core, each started when all earlier ones are at work; what was compared is remembered."""

    def __init__(self) -> None:
        self._all = [MathsProcess() for _ in range(os.cpu_count() or 1)]
        self._free: LifoQueue[MathsProcess] = LifoQueue()
        for process in reversed(self._all):
            self._free.put(process)
        self.compare = lru_cache(maxsize=REMEMBERED)(self._compare)

    def _compare(self, expression: str, expected: str) -> Comparison:
        process = self._free.get()
        try:
            return process.compare(expression, expected)
        finally:
            self._free.put(process)

    def close(self) -> None:
        """Ends those that were started."""
        for process in self._all:
            process.close()


maths_process = MathsProcesses()
"""The processes that the whole interpreter shares."""
atexit.register(maths_process.close)
