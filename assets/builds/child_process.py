"""Run a second build in a child process: Dagster captures output per process. Its lines are printed whole, each behind
a bar. It ends with the command, also if that is killed, and marks finished parts, for which the command may wait."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from rich.console import Console
from rich.text import Text

from darkroom.assets.builds.jobs import MaterializationFailed
from darkroom.assets.clusters.programs import ChildProcess, LaunchError, Program, job_directory
from darkroom.assets.terminal.run_lines import STATUS, STATUS_SECONDS
from darkroom.pipelines.processes.supervisor import JobDirectory
from darkroom.sandbox.errors import raised_as

BAR = "│ "
_SECONDS = 0.2


def mark(part: str) -> None:
    """Mark ``part`` as done, in the child process. Does nothing where no command waits."""
    job = JobDirectory.of_this_program()
    if job is not None:
        _mark(job, part).touch()


def _mark(job: JobDirectory, part: str) -> Path:
    return job.folder / f"{part}.done"


@contextmanager
def child_build(console: Console, program: Program) -> Iterator["ChildBuild"]:
    """Yields ``program`` to be started; at the end of the block it is started, if it was not, and awaited. An error
    within the block stops it. Raises ``MaterializationFailed`` with the program's error message."""
    with job_directory() as job:
        child = ChildBuild(console, program, job)
        try:
            yield child
            child.wait()
        except BaseException:
            child.stop()
            raise


class ChildBuild:
    """The process of a program, from ``start`` on."""

    def __init__(self, console: Console, program: Program, job: JobDirectory) -> None:
        self._console, self._program, self._job = console, program, job
        self._is_terminal = console.is_terminal  # while a run redirects the output, it says no
        self._process: ChildProcess | None = None
        self._status = ""

    def start(self) -> ChildProcess:
        """Idempotent."""
        if self._process is None:
            read, write = os.pipe()
            live = {STATUS_SECONDS: "5"} if self._is_terminal else {}
            self._process = ChildProcess(self._program.command(), self._job, live, output=write)
            os.close(write)
            self._printer = Thread(target=self._print, args=(read,), daemon=True, name="child build")
            self._printer.start()
        return self._process

    def wait(self, part: str = "") -> None:
        """Wait until it has marked ``part``; without one until it ends. Raises ``MaterializationFailed``."""
        process = self.start()
        with self._console.status("") as status:
            while not process.has_ended():
                if part and _mark(self._job, part).exists():
                    return
                status.update(Text(self._status))
                time.sleep(_SECONDS)
        self._printer.join()
        with raised_as(lambda error: MaterializationFailed(str(error)), LaunchError):
            process.check()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def _print(self, descriptor: int) -> None:
        """Print its lines; on a terminal its status is part of the command's own status line."""
        with open(descriptor, encoding="utf-8", errors="replace") as output:
            for line in output:
                if self._is_terminal and line.startswith(STATUS):
                    self._status = line.strip()
                else:
                    self._console.print(Text(BAR + line.rstrip("\n")), soft_wrap=True)
