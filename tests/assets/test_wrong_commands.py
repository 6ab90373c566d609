"""Every command with wrong words and on broken homes: one line that names what to do, a status, no traceback."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from click import Command
from click.testing import Result
from typer.main import get_command
from typer.testing import CliRunner

from assets.cli import app
from pipelines.storage.command_errors import program_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = {name: program_of(import_module(name).main) for name in ("train.sft", "train.grpo", "train.evaluate")}


def commands(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below = getattr(command, "commands", {})
    for name, inner in below.items():
        yield from commands(inner, (*path, name))
    if not below:
        yield path


COMMANDS = sorted(commands(get_command(app)))


def documented() -> set[tuple[str, ...]]:
    """The commands that README and docs name on a line of their own."""
    lines = [line.strip() for page in PAGES for line in page.read_text().splitlines()]
    calls = [re.match(r"(?:\$ )?(?:\.venv/bin/)?darkroom ((?:[a-z-]+ ?){1,3})", line) for line in lines]
    words = {tuple(call[1].split()) for call in calls if call}
    return {command for command in COMMANDS for call in words if call[: len(command)] == command}


def test_the_docs_name_most_commands() -> None:
    assert len(documented()) > len(COMMANDS) / 2


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_unknown_option_is_status_2(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--no-such-option"])
    assert result.exit_code == 2
    assert "--no-such-option" in result.stderr
    assert "Traceback" not in result.output


def check_line(result: Result, status: int = 1) -> None:
    """One line on stderr, with the status, of an error that was foreseen."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")


WRONG = """
gallery nowhere
gallery junk
gallery all --rejects --serve --host 0.0.0.0
gallery all --rejects --serve --beside nowhere
replay crop
replay junk
explain photo/cat
explain abcdef
materialize nope
rl nope
calibrate consistency --labelled nowhere.jsonl
calibrate consistency --labelled junk/questions.jsonl
calibrate nobody --labelled junk/questions.jsonl
conformance crop --model nowhere
conformance crop --model junk
inspect-mask crop --model junk
export crop --layout nope
export junk --layout llama_factory
export rl --layout trl_grpo
ingest junk
ingest junk --questions junk/questions.jsonl
sources add nope
sources add mmk12 --path nowhere
sources show nope
train plan --model nope
train plan --model junk
serve
serve nope --engine nope
sandbox run junk/questions.jsonl --tier nope
sandbox serve --protocol nope --stdio
sandbox serve --host 0.0.0.0
sandbox serve --tier nope
environment serve junk
environment serve nowhere
environment serve nowhere --method nope
agent serve
agent serve --model nope
annotate sync
annotate doctor
annotate take-in nowhere
annotate take-in junk/questions.jsonl
annotate report
annotate restore nowhere
annotate users list
annotate pre-annotate
annotate finish
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a folder of junk."""
    junk = tmp_path / "junk"
    junk.mkdir()
    (junk / "questions.jsonl").write_bytes(b'\xff\xfe nonsense\n{"image": "a.jpg"}\n')
    (junk / "train-00000-of-00001.parquet").write_bytes(b"garbage")
    (junk / "config.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", WRONG.split("\n")[1:-1])
def test_wrong_words_are_one_line(folder: Path, words: str) -> None:
    check_line(CliRunner().invoke(app, shlex.split(words)))


@pytest.mark.parametrize("words", ["audit crop", "audit junk", "audit junk/questions.jsonl --mapping nowhere"])
def test_what_cannot_be_audited_is_status_2(folder: Path, words: str) -> None:
    check_line(CliRunner().invoke(app, shlex.split(words)), status=2)


@pytest.mark.parametrize(
    "words",
    [
        "train.sft --dataset nowhere --model nowhere --output out",
        "train.sft --dataset junk --model junk --output out",
        "train.sft --dataset junk --model nowhere --output out --set nonsense",
        "train.sft --dataset junk --model nowhere --output out --phases nonsense",
        "train.grpo --dataset nowhere --model nowhere --output out",
        "train.grpo --dataset junk --model junk --output out --method nope",
        "train.grpo --dataset junk --model junk --output out",
        "train.evaluate --output out",
        "train.evaluate --output out --model nowhere --dataset nowhere",
        "train.evaluate --output out --oracle crop --dataset junk",
        "train.evaluate --output out --oracle crop --benchmark nonsense",
        "train.evaluate --output junk --oracle crop --source demo",
    ],
)
def test_wrong_words_of_a_program_are_one_line(folder: Path, words: str) -> None:
    name, *arguments = shlex.split(words)
    check_line(CliRunner().invoke(PROGRAMS[name], arguments))


@pytest.mark.parametrize("words", ["--serve --limit 3", "--serve --out page.html", "--beside folder"])
def test_options_of_a_page_and_of_the_served_gallery_exclude_each_other(folder: Path, words: str) -> None:
    assert CliRunner().invoke(app, ["gallery", *words.split()]).exit_code == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unknown_option_of_a_program_is_status_2(name: str) -> None:
    assert CliRunner().invoke(PROGRAMS[name], ["--no-such-option"]).exit_code == 2


ON_A_FILE = (
    "summary",
    "home",
    "demo --no-train",
    "materialize demo",
    "rl demo_rl",
    "annotate init",
    "gallery",
    "export rl --layout trl_grpo",
)


@pytest.mark.parametrize("words", ON_A_FILE)
def test_a_home_that_is_a_file_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("DARKROOM_HOME", str(folder / "file"))
    check_line(CliRunner().invoke(app, shlex.split(words)))


@pytest.mark.parametrize("words", ["summary", "demo --no-train", "explain abcdef"])
def test_a_damaged_home_is_one_line(folder: Path, words: str) -> None:
    home = folder / "home"
    for name in ("ledger.sqlite", "tables/samples/demo-0000.parquet", "tables/samples/demo-0000.rejects.parquet"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"garbage" * 1000)
    check_line(CliRunner().invoke(app, shlex.split(words)))
