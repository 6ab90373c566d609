"""The commands of ``darkroom``, a module per group, listed in ``assets/cli.py``; heavy imports are inside functions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from annotation.commands import CONSOLE
from pipelines.models.serving.cli import LINE_SECONDS

if TYPE_CHECKING:
    from pipelines.storage.stage import Progress as OnProgress


def print_line(line: str) -> None:
    """Prints a line without colours or line breaks, so that its paths can be copied."""
    CONSOLE.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    """A bar on ``CONSOLE``; call what it yields with (rows done, rows in all). The bar disappears at the end.

    Where there is no terminal it is a line now and then.
    """
    if not CONSOLE.is_terminal:
        yield _progress_lines(title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=CONSOLE, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda n_done, n_rows: bar.update(task, completed=n_done, total=n_rows)


def _progress_lines(title: str) -> OnProgress:
    printed_at = time.monotonic()

    def report(n_done: int, n_rows: int) -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= LINE_SECONDS:
            printed_at = time.monotonic()
            print_line(f"{title}: {n_done:,} of {n_rows:,}")

    return report
