"""No help loses a word on its way to the screen: a markup eats `<placeholders>`, a narrow table cuts names."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import pytest
import typer
from click import Argument, Command, Context
from click.testing import CliRunner
from typer import rich_utils
from typer.main import get_command

from darkroom.assets.cli import app
from darkroom.pipelines.command_line.errors import markup_for, program_of
from tests.matrices import every_nth

MODULES = ("darkroom.train.sft", "darkroom.train.grpo", "darkroom.train.evaluate", "darkroom.train.tiny")


def apps() -> dict[str, typer.Typer]:
    """Every application with a help: `darkroom`, and the modules of `train` as `typer.run` starts them."""
    return {"darkroom": app, **{name: program_of(importlib.import_module(name).main) for name in MODULES}}


def commands(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


def lost_words(program: Command, path: tuple[str, ...], command: Command, width: str = "400") -> list[str]:
    """The words of the source's help that the printed help lacks, and the names of options that it cuts."""
    result = CliRunner().invoke(program, [*path, "--help"], env={"COLUMNS": width, "TERMINAL_WIDTH": width})
    assert result.exit_code == 0, result.output
    texts, names = [command.help or ""], []
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        name, text = parameter.get_help_record(Context(command)) or ("", "")
        texts.append(text)
        if not isinstance(parameter, Argument):
            texts.append(name.replace("/", " ").replace(",", " "))
            names += [*parameter.opts, *parameter.secondary_opts]
    printed = "".join(result.output.split())  # what is wider than a line goes on in the next
    words = {word.strip("*;[]") for text in texts for word in re.split(r"[\s`]+", text)}
    lost = [word for word in words if word not in result.output and word not in printed]
    return sorted(lost + [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", result.output)])


@pytest.mark.parametrize("name", ["darkroom", *MODULES])
@pytest.mark.parametrize("width", every_nth(["40", "60", "130", "400"], 2))
def test_every_word_of_a_help_is_printed(monkeypatch: pytest.MonkeyPatch, name: str, width: str) -> None:
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", int(width))  # read from the environment at import
    application = apps()[name]
    monkeypatch.setattr(application, "rich_markup_mode", markup_for(int(width)))
    program = get_command(application)
    lost = {path: lost_words(program, path, command, width) for path, command in commands(program)}
    assert not {path: words for path, words in lost.items() if words}


def test_every_argument_has_a_help_text() -> None:
    """click 8.5 takes it from typer 0.25."""
    bare = [
        f"{' '.join(path)} {parameter.name}"
        for path, command in commands(get_command(app))
        for parameter in command.params
        if isinstance(parameter, Argument) and not getattr(parameter, "help", None)
    ]
    assert not bare


def test_a_placeholder_that_markdown_eats_is_found() -> None:
    application = typer.Typer(rich_markup_mode="markdown", add_completion=False)

    @application.command()
    def page() -> None:
        """Writes HOME/<dataset>.html."""

    assert lost_words(get_command(application), (), get_command(application)) == ["HOME/<dataset>.html."]
