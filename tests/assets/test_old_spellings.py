"""Every command and option of the version before stays valid: by its name, or as a hidden alias."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from darkroom.assets.cli import OLD_SPELLINGS, app
from tests.command_lines import COMMANDS, command_of

OLD: dict[str, str] = json.loads(Path(__file__).with_name("old_spellings.json").read_text())
GONE = {
    "pivots": "no paper has them",
    "train plan": "accelerate estimate-memory estimates",
    "audit --in": "the second executor is a test",
}
"""What was cut with its feature."""
PAIRS = [(command, option) for command, options in OLD.items() for option in ["", *options.split()]]


@pytest.mark.parametrize(("command", "option"), PAIRS, ids=[" ".join(pair).strip() for pair in PAIRS])
def test_an_old_spelling_is_understood(command: str, option: str) -> None:
    if command in GONE or f"{command} {option}" in GONE:
        return
    words = OLD_SPELLINGS.current([*command.split(), *([option] if option else [])])
    path = max((path for path in COMMANDS if words[: len(path)] == list(path)), key=len, default=None)
    assert path is not None, words
    known = {name for parameter in command_of(path).params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("-")} <= known


def test_what_is_gone_was_there() -> None:
    assert GONE.keys() <= {*OLD, *(" ".join(pair) for pair in PAIRS)}


def test_no_alias_is_shown() -> None:
    assert not {"replay", "conformance", "home"} & {path[0] for path in COMMANDS}
    assert "--limit" not in CliRunner().invoke(app, ["gallery", "--help"], terminal_width=200).output


def test_a_command_of_before_runs_with_its_options(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["replay", str(tmp_path / "nowhere"), "--limit=3", "--least", "0.5"])
    assert result.exit_code == 2
    assert "nowhere" in result.stderr


def test_what_follows_two_dashes_is_left_alone() -> None:
    assert OLD_SPELLINGS.current(["gallery", "--limit", "3", "--", "--limit"]) == [
        *("gallery", "--rows", "3"),
        *("--", "--limit"),
    ]


def test_there_are_at_most_fifty_commands() -> None:
    assert len(COMMANDS) <= 50


def test_version_prints_the_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("darkroom ")
