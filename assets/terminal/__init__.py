"""Output of commands: tables, lists of facts, paths, progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from darkroom.pipelines.command_line.console import PROGRESS
from darkroom.pipelines.models.serving.cli import LINE_SECONDS
from darkroom.pipelines.storage.store_paths import StorePath

if TYPE_CHECKING:
    from darkroom.pipelines.storage.stage_runs import Progress as OnProgress


def table(headers: Sequence[str], rows: Iterable[Sequence[RenderableType]] = (), **options: Any) -> Table:
    """A table of texts whose words are folded, never cut: a narrow terminal loses nothing."""
    columns = [Column(header, overflow="fold") for header in headers]
    grid = Table(*columns, **{"box": None, "header_style": "dim", "title_justify": "left", **options})
    for row in rows:
        grid.add_row(*row)
    return grid


def fact(label: str, text: str) -> Table:
    """A line of a list of facts; what does not fit goes on below the text."""
    grid = Table.grid(Column(width=20), Column(overflow="fold"), padding=(0, 1, 0, 0))
    grid.add_row(Text(label), Text(text))
    return grid


def counts(title: str, lines: Iterable[tuple[int, str, str]]) -> Table:
    """A list of numbers of rows, each with what it counts, and an example below that (empty: none)."""
    grid = Table.grid(Column(justify="right", no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
    grid.title, grid.title_justify, grid.title_style = title or None, "left", "bold"
    for n_rows, what, example in lines:
        grid.add_row(f"{n_rows:,}", Text(what))
        if example:
            grid.add_row("", Text(example, style="dim"))
    return grid


def relative(place: StorePath | str) -> str:
    """A path as one types it: from the current folder on where it lies below it."""
    path = Path(str(place))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(place)


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
def progress_bar(title: str, console: Console = PROGRESS) -> Iterator[OnProgress]:
    """A bar on the console; call what it yields with (rows done, rows in all). The bar disappears at the end. Where
    there is no terminal it is a line on standard error now and then."""
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
