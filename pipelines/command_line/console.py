"""The terminal of the commands, and the workspace that they open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from darkroom.sandbox.terminal import SafeConsole

if TYPE_CHECKING:
    from darkroom.pipelines.storage.workspace import Workspace

CONSOLE = SafeConsole()
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for a program.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what it would change, and change nothing.")]


def print_line(line: str) -> None:
    """Print a line without colours or line breaks, so that its paths can be copied."""
    CONSOLE.print(line, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as one JSON object on the standard output, for a program."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_plain(text: str) -> None:
    """Print a line in which only marked words are coloured, without line breaks."""
    CONSOLE.print(text, highlight=False, soft_wrap=True)


@contextmanager
def open_workspace() -> Iterator[Workspace]:
    """Open the workspace of the environment; closed at the end of the block."""
    from darkroom.pipelines.storage.workspace import Workspace

    with Workspace.from_environment() as workspace:
        yield workspace
