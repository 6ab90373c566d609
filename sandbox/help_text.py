"""The help of every command, which no narrow terminal cuts.

typer sets options in a table, with a column for each kind of name, and cuts a name that its column does not hold. Where
such a table leaves little for the texts, each name stands on a line of its own here, its text below it.
"""

import inspect
from collections.abc import Callable, Iterator
from gettext import gettext
from typing import Any

import click
import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandFunctionType

_LEAST_TEXT = 44
"""Columns that a table leaves for the texts, or there is none."""
_FRAME = 10
"""Columns of a table's border, of the star of what is required, and between the others."""


class _FoldedHelp:
    """Mixed into a command of typer."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As typer's, in lists where tables do not fit."""
        console = Console()
        if console.width >= _names_width(ctx) + _FRAME + _LEAST_TEXT:
            super().format_help(ctx, formatter)  # type: ignore[misc]  # typer's, which it is mixed into
        else:
            _print_lists(ctx, console)


class Commands(typer.Typer):
    """As ``typer.Typer``; no help of its commands is cut."""

    def __init__(self, *, cls: type[TyperGroup] = TyperGroup, **options: Any) -> None:
        suggests = not hasattr(click.exceptions, "NoSuchCommand")  # click 8.4 does; together they ask twice
        super().__init__(cls=_folding(cls), suggest_commands=suggests, **options)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **options: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        return super().command(name, cls=_folding(cls or TyperCommand), **options)


def _folding(kind: type[Any]) -> type[Any]:
    return type(kind.__name__, (_FoldedHelp, kind), {})


def _names_width(ctx: click.Context) -> int:
    """Columns of what stands left of the texts: names, those that negate them, and kinds of values."""
    shown = [parameter for parameter in ctx.command.get_params(ctx) if not getattr(parameter, "hidden", False)]
    parts = (
        (",".join(parameter.opts), ",".join(parameter.secondary_opts), parameter.make_metavar(ctx))
        for parameter in shown
    )
    options = sum(max(map(len, column)) for column in zip(*parts, strict=True))
    return max([options, *(len(command.name or "") for command in _commands(ctx))])


def _commands(ctx: click.Context) -> Iterator[click.Command]:
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, name)
            if command is not None and not command.hidden:
                yield command


def _print_lists(ctx: click.Context, console: Console) -> None:
    command = ctx.command
    usage = " ".join([gettext("Usage:"), ctx.command_path, *command.collect_usage_pieces(ctx)])
    console.print(Text(usage, style="bold"), "", _prose(command, command.help or ""), sep="\n")
    kinds: dict[str, list[tuple[str, Any]]] = {"Arguments": [], "Options": [], "Commands": []}
    for parameter in command.get_params(ctx):
        if record := parameter.get_help_record(ctx):
            kind = "Arguments" if isinstance(parameter, click.Argument) else "Options"
            kinds[kind].append((record[0], Text(record[1])))
    for below in _commands(ctx):
        first = inspect.cleandoc(below.short_help or below.help or "").split("\n\n")[0]
        kinds["Commands"].append((below.name or "", _prose(below, first)))
    for kind, entries in kinds.items():
        if entries:
            console.print("", Text(kind, style="bold"), sep="\n")
        for name, text in entries:
            console.print(Text(name, style="bold cyan"), Padding(text, (0, 0, 0, 4), expand=False), sep="\n")


def _prose(command: click.Command, text: str) -> Any:
    """A help as it is shown: as Markdown where the command's is, else its paragraphs."""
    text = inspect.cleandoc(text).partition("\f")[0]
    if getattr(command, "rich_markup_mode", None) == "markdown":
        from rich.markdown import Markdown  # takes a while, and only a help needs it

        return Markdown(text)
    return Text("\n\n".join(" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n")))
