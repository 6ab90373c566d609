"""The commands of the program, and the command lines that README, docs and the commands' own help teach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from click import Command
from typer.main import get_command

from darkroom.assets.cli import COMMANDS as TABLE, app
from darkroom.pipelines.command_line.console import panelled_group

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below = getattr(command, "commands", {})
    for name, inner in below.items():
        yield from commands(inner, (*path, name))
    if not below:
        yield path


ANNOTATE = panelled_group(TABLE["Annotate"]["annotate"])
PROGRAM: Any = get_command(app)
COMMANDS = sorted(commands(PROGRAM))


def command_of(path: tuple[str, ...]) -> Any:
    return reduce(lambda group, name: group.commands[name], path, PROGRAM)


def lines_of_docs() -> list[str]:
    """The arguments of the command lines of README and docs, each once."""
    texts = [page.read_text().replace("\\\n", " ") for page in PAGES]
    calls = [
        re.match(r"(?:\$ )?(?:\.venv/bin/)?darkroom (.+)", line.strip()) for text in texts for line in text.split("\n")
    ]
    words = [re.split(r"\s#|[;|>]", call[1])[0].split() for call in calls if call]
    return list(dict.fromkeys(" ".join(line) for line in words))


def lines_of_help() -> list[str]:
    """The arguments of the examples in the commands' help: each is a paragraph that begins with it."""
    texts = [command_of(path).help or "" for path in COMMANDS]
    examples = [example for text in texts for example in re.findall(r"^`darkroom ([^`]+)`", text, re.MULTILINE)]
    return list(dict.fromkeys(" ".join(example.split()) for example in examples))
