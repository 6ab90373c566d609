"""What a replay found, in the terminal: the rate, and a table of all that came out otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pipelines.replay import Replay
from pipelines.stages import Progress as Report

_MOST_LISTED = 50


@contextmanager
def progress_bar(console: Console, title: str) -> Iterator[Report]:
    """A bar that moves when what it yields is called with (rows done, rows in all); gone at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def print_replay(console: Console, found: Replay) -> None:
    """Prints the rate and, if there are any, the differences."""
    if found.differences:
        console.print(_table(found))
    if len(found.differences) > _MOST_LISTED:
        console.print(f"… and {len(found.differences) - _MOST_LISTED:,} more")
    if found.n_other_sandbox:
        console.print(
            f"{found.n_other_sandbox:,} rows were made by another version of the sandbox than the one here: where they "
            "differ, materialise their family again",
            highlight=False,
        )
    console.print(
        f"{found.rate:.2%} of the rows came out the same: {found.n_same:,} of {found.n_rows:,}, "
        f"{found.n_programs:,} programs executed",
        highlight=False,
    )


def _table(found: Replay) -> Table:
    table = Table("row", "family", "round", "differs", "recorded", "replayed", "sandbox")
    for one in found.differences[:_MOST_LISTED]:
        made_by = "another version" if one.other_sandbox else "this one"
        row = f"{one.trajectory_id[:12]} {one.source_row}"
        table.add_row(Text(row), one.family, str(one.round), one.what, Text(one.recorded), Text(one.replayed), made_by)
    return table
