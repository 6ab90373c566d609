"""The terminal of the commands, the workspace that they open, and their groups: one style, panels in the order of use,
and spellings of earlier versions as hidden aliases."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

from darkroom.pipelines.command_line.errors import MARKUP, CommandGroup, own_words
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


def open_workspace() -> Workspace:
    from darkroom.pipelines.storage.workspace import Workspace

    return Workspace.from_environment()


Panels = Mapping[str, Mapping[str, Callable[..., Any] | typer.Typer]]
"""Headings of a help, each with its commands and groups by name."""


class OrderedGroup(CommandGroup):
    """Lists its commands in the order of their panels; typer would list groups last."""

    order: tuple[str, ...] = ()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.commands, key=lambda name: self.order.index(name) if name in self.order else len(self.order))


def command_group(*, cls: type[CommandGroup] = CommandGroup, **options: Any) -> typer.Typer:
    """Commands below one name, within the boundary of errors; without a command it prints its help."""
    return typer.Typer(
        cls=cls,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=MARKUP,
        suggest_commands=False,  # click does
        **options,
    )


def panelled_group(panels: Panels, *, cls: type[OrderedGroup] = OrderedGroup, **options: Any) -> typer.Typer:
    """A group whose commands stand below the headings ``panels``."""
    names = tuple(name for commands in panels.values() for name in commands)
    app = command_group(cls=type(cls.__name__, (cls,), {"order": names}), **options)
    for panel, commands in panels.items():
        for name, command in commands.items():
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(command)
    return app


class Aliases:
    """Spellings of earlier versions, of commands and of their options, and what they are called now."""

    def __init__(self, commands: Mapping[str, str], options: Mapping[str, Mapping[str, str]]) -> None:
        """``options`` by the command's present name, as in ``{"gallery": {"--limit": "--rows"}}``."""
        self._commands = {tuple(old.split()): new.split() for old, new in commands.items()}
        self._options = {tuple(command.split()): names for command, names in options.items()}

    def current(self, args: Sequence[str] | None) -> list[str]:
        """A command line, by default the process's own, in today's spelling."""
        own, others = own_words(args)
        for old, new in self._commands.items():
            if tuple(own[: len(old)]) == old:
                own[: len(old)] = new
        names = next((names for path, names in self._options.items() if tuple(own[: len(path)]) == path), {})
        parts = (word.partition("=") for word in own)
        return [*(f"{names.get(option, option)}{equals}{value}" for option, equals, value in parts), *others]
