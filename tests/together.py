"""Programs that begin at the same moment, for tests of what processes do to one another."""

import subprocess
import sys
from collections.abc import Sequence


def run_together(program: str, n: int, arguments: Sequence[str]) -> None:
    """Runs ``n`` processes of a Python program that prints ``ready``, waits for a line, and ends with status 0."""
    command = [sys.executable, "-c", program, *arguments]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(n)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=300)
    assert [process.returncode for process in processes] == [0] * n
