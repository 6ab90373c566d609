"""Shows the steps of a start: a line for each with its seconds, in a terminal with a clock while it runs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

TITLES = {
    "install": "install Label Studio (about 800 megabytes, once)",
    "migrate": "migrate the database (once)",
    "load": "load Label Studio",
    "accounts": "accounts",
    "serve": "start the workers",
}


@contextmanager
def step_lines(console: Console) -> Iterator[Callable[[str], None]]:
    """A function to call with the step under way, as often as one likes."""
    lines = _Clock(console) if console.is_terminal else _Lines(console)
    try:
        yield lines.show
    finally:
        lines.end()


class _Lines:
    """For a file or a pipe: each step's name when it begins, its seconds when it ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step, self._start = "", 0.0

    def show(self, step: str) -> None:
        if step == self._step:
            return
        self.end()
        self._step, self._start = step, time.monotonic()
        self._print(f"{TITLES[step]} … ", end="")

    def end(self) -> None:
        if self._step:
            self._print(f"{time.monotonic() - self._start:.0f} s")
        self._step = ""

    def _print(self, text: str, end: str = "\n") -> None:
        self._console.print(text, end=end, highlight=False, soft_wrap=True)
        self._console.file.flush()


class _Clock:
    """For a terminal."""

    def __init__(self, console: Console) -> None:
        columns = (SpinnerColumn(finished_text=" "), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console)
        self._step, self._task = "", TaskID(0)
        self._progress.start()

    def show(self, step: str) -> None:
        if step == self._step:
            return
        self._finish()
        self._step, self._task = step, self._progress.add_task(TITLES[step], total=1)

    def end(self) -> None:
        self._finish()
        self._progress.stop()

    def _finish(self) -> None:
        if self._step:
            self._progress.update(self._task, completed=1)
