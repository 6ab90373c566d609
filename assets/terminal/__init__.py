"""Output of commands: tables, lists of facts, paths."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from darkroom.pipelines.storage.store_paths import StorePath


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
