"""Progress: what shows a stage's progress lines, and a bar of a command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from darkroom.pipelines.command_line.console import CONSOLE
from darkroom.pipelines.models.serving.cli import LINE_SECONDS

if TYPE_CHECKING:
    from darkroom.pipelines.storage.stage_runs import Progress as OnProgress


Show = Callable[[str, float], None]
"""Takes a line, and how many seconds are left of the stage (0: not known)."""
progress_sink: ContextVar[Show | None] = ContextVar("progress_sink", default=None)
"""Shows the progress lines of this process's runs."""


@contextmanager
def shown_by(show: Show) -> Iterator[None]:
    """Send every progress line of this process's runs to ``show``, besides the log."""
    token = progress_sink.set(show)
    try:
        yield
    finally:
        progress_sink.reset(token)


@contextmanager
def progress_bar(title: str, console: Console = CONSOLE) -> Iterator[OnProgress]:
    """A bar on the console; call what it yields with (rows done, rows in all). The bar disappears at the end. Where
    there is no terminal it is a line on standard error now and then: what is printed may be read by a program."""
    if not console.is_terminal:
        yield _progress_lines(title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda n_done, n_rows: bar.update(task, completed=n_done, total=n_rows)


def _progress_lines(title: str) -> OnProgress:
    printed_at = time.monotonic()

    def report(n_done: int, n_rows: int) -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= LINE_SECONDS:
            printed_at = time.monotonic()
            typer.echo(f"{title}: {n_done:,} of {n_rows:,}", err=True)

    return report
