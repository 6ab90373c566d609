"""The terminal of the commands, the workspace that they open, and their groups: one style, panels in the order of use,
and spellings of earlier versions as hidden aliases. Commands are imported when they are run: a help is quick."""

from __future__ import annotations

import ast
import json
from collections import UserDict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import click
import typer
from typer.core import MarkupMode, TyperCommand
from typer.main import get_group

from darkroom.pipelines.command_line.errors import MARKUP, CommandGroup, own_words
from darkroom.sandbox.terminal import SafeConsole

if TYPE_CHECKING:
    from darkroom.pipelines.storage.workspace import Workspace

CONSOLE = SafeConsole()
PROGRESS = SafeConsole(stderr=True)  # what CONSOLE prints may be read by a program
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


_PACKAGES = Path(__file__).parents[2]


class _Commands(UserDict[str, Any]):
    """The commands of a group by name; each is imported when it is looked up."""

    def __init__(self, group: Mapping[str, Any], markup: MarkupMode) -> None:
        panels = [(panel, commands) for panel, commands in group.items() if panel != "help"]
        super().__init__({name: (panel, target) for panel, commands in panels for name, target in commands.items()})
        self._markup = markup

    def __getitem__(self, name: str) -> click.Command:
        panel, target = self.data[name]
        app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=self._markup, suggest_commands=False)
        if isinstance(target, str):
            module, _, function = target.partition(":")
            app.command(name, rich_help_panel=panel)(getattr(import_module(module), function))
        else:
            app.add_typer(panelled_group(target), name=name, rich_help_panel=panel)
        return get_group(app).commands[name]

    def listed(self, name: str) -> click.Command:
        """Describe a command for a list, without importing it."""
        panel, target = self.data[name]
        if isinstance(target, str):
            module, _, function = target.partition(":")
            source = _PACKAGES.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8")
            defined = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
            text = next(ast.get_docstring(node) for node in defined if node.name == function)
        else:
            text = target["help"]
        return TyperCommand(name, help=text, rich_help_panel=panel, rich_markup_mode=self._markup)


class PanelledGroup(CommandGroup):
    """Commands below headings, in the order of both."""

    table: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = self._commands = _Commands(self.table, self.rich_markup_mode)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._commands.listed(cmd_name) if cmd_name in self._commands else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, self._commands[name] if name else None, rest


def panelled_group(group: Mapping[str, Any], *, cls: type[PanelledGroup] = PanelledGroup) -> typer.Typer:
    """A group within the boundary of errors: its ``help``, and by heading its commands by name, each the path of a
    function (``darkroom.module:name``) or another group."""
    app = typer.Typer(
        cls=type(cls.__name__, (cls,), {"table": group}),
        help=group["help"],
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=MARKUP,
        suggest_commands=False,  # click does
    )
    app.callback()(lambda: None)  # typer sees no command in it
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
