"""Groups of commands: one style, panels in the order of use, and spellings of earlier versions as hidden aliases."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import typer

from darkroom.pipelines.command_line.errors import MARKUP, CommandGroup

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

    def current(self, words: Sequence[str]) -> list[str]:
        """A command line in today's spelling; what follows ``--`` is another program's."""
        n_own = list(words).index("--") if "--" in words else len(words)
        own = list(words[:n_own])
        for old, new in self._commands.items():
            if tuple(own[: len(old)]) == old:
                own[: len(old)] = new
        names = next((names for path, names in self._options.items() if tuple(own[: len(path)]) == path), {})
        return [*(_renamed(word, names) for word in own), *words[n_own:]]


def _renamed(word: str, names: Mapping[str, str]) -> str:
    option, equals, value = word.partition("=")
    return f"{names.get(option, option)}{equals}{value}"


def words_of(args: Sequence[str] | None) -> Sequence[str]:
    """The command line: ``args``, or the process's own."""
    return sys.argv[1:] if args is None else args
