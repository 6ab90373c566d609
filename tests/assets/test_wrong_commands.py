"""Every command with wrong words and on broken homes: one line that names what to do, a status, no traceback."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import Result
from click.types import StringParamType
from typer.models import TyperPath
from typer.testing import CliRunner

from darkroom.assets.cli import app
from darkroom.pipelines.command_line.errors import program_of
from tests.command_lines import COMMANDS, PAGES, command_of, lines_of_docs

NO_SUCH = "no_such/thing"
PROGRAMS = {
    name: program_of(import_module(name).main)
    for name in ("darkroom.train.sft", "darkroom.train.grpo", "darkroom.train.evaluate")
}


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


@pytest.mark.parametrize(("words", "meant"), [(["gallry"], "gallery"), (["sources", "lst"], "list")])
def test_a_mistyped_command_is_asked_about_once(words: list[str], meant: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.stderr.count(f"'{meant}'") == 1


def wrong_lines(line: str) -> Iterator[str]:
    """The line with one argument replaced: by an option that there is not, no such thing, or what is no number or
    choice. Values that may be any text stay."""
    words = line.split()
    path = max((path for path in COMMANDS if words[: len(path)] == list(path)), key=len)
    command = command_of(path)
    options = {name: option for option in command.params for name in (*option.opts, *option.secondary_opts)}
    before = None
    for position, word in enumerate(words[len(path) :], len(path)):
        is_value = before is not None and not before.is_flag
        if word.startswith("--"):
            wrong, before = "--no-such-option", options.get(word)
        else:
            wrong = NO_SUCH if not is_value or not isinstance(before.type, StringParamType | TyperPath) else word
            before = None
        if path == ("serve",) and position == len(path):
            continue  # any name may be a model of the hub
        if wrong != word and path != ("new",):  # which makes any folder
            yield " ".join([*words[:position], wrong, *words[position + 1 :]])
    if len(words) == len(path):
        yield f"{line} {NO_SUCH}"


@pytest.mark.parametrize("line", [wrong for line in lines_of_docs() for wrong in wrong_lines(line)])
def test_a_line_of_the_docs_with_one_wrong_argument_is_an_error_of_one_line(folder: Path, line: str) -> None:
    result = CliRunner().invoke(app, shlex.split(line))
    if result.stderr.startswith("Usage: "):
        assert result.exit_code == 2
        assert "Traceback" not in result.output
    else:
        check_line(result, status=2 if line.startswith("audit ") else 1)


def check_line(result: Result, status: int = 1) -> None:
    """One line on stderr, with the status, of an error that was foreseen."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")


NO_CHOICE = """
serve nope --engine nope
sandbox run junk/questions.jsonl --tier nope
sandbox serve --protocol nope --stdio
sandbox serve --tier nope
export rl --layout trl_grpo --mode nope
ingest junk --box-frame nope
audit crop --only nope
annotate users add ann@example.com --role nope
"""


@pytest.mark.parametrize("line", NO_CHOICE.split("\n")[1:-1])
def test_a_value_that_is_no_choice_is_status_2_and_lists_the_choices(folder: Path, line: str) -> None:
    result = CliRunner().invoke(app, shlex.split(line), env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert result.exit_code == 2
    assert "'nope' is not one of " in result.stderr
    assert "Traceback" not in result.output


WRONG = """
gallery nowhere
gallery junk
gallery nowhere --rejects
gallery all --rejects --serve --host 0.0.0.0
gallery all --rejects --serve --compare-with nowhere
explain photo/cat
explain abcdef
materialize nope
rl nope
calibrate consistency --labelled nowhere.jsonl
calibrate consistency --labelled junk/questions.jsonl
calibrate nobody --labelled junk/questions.jsonl
inspect-mask crop --model junk
export crop --layout nope
export junk --layout llama_factory
export rl --layout trl_grpo
ingest junk
ingest junk --questions junk/questions.jsonl
sources add nope
sources add mmk12 --path nowhere
sources list nope
serve
sandbox serve --host 0.0.0.0
environment serve junk
environment serve nowhere
environment serve nowhere --method nope
agent serve
agent serve --model nope
annotate sync
annotate doctor
annotate import nowhere
annotate import junk/questions.jsonl
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
        "darkroom.train.sft --dataset nowhere --model nowhere --output out",
        "darkroom.train.sft --dataset junk --model junk --output out",
        "darkroom.train.sft --dataset junk --model nowhere --output out --set nonsense",
        "darkroom.train.sft --dataset junk --model nowhere --output out --phases nonsense",
        "darkroom.train.grpo --dataset nowhere --model nowhere --output out",
        "darkroom.train.grpo --dataset junk --model junk --output out --method nope",
        "darkroom.train.grpo --dataset junk --model junk --output out",
        "darkroom.train.evaluate --output out",
        "darkroom.train.evaluate --output out --model nowhere --dataset nowhere",
        "darkroom.train.evaluate --output out --oracle crop --dataset junk",
        "darkroom.train.evaluate --output out --oracle crop --benchmark nonsense",
        "darkroom.train.evaluate --output junk --oracle crop --source demo",
    ],
)
def test_wrong_words_of_a_program_are_one_line(folder: Path, words: str) -> None:
    name, *arguments = shlex.split(words)
    check_line(CliRunner().invoke(PROGRAMS[name], arguments))


def test_a_look_at_a_home_that_is_not_there_makes_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_HOME", str(folder / "home"))
    assert CliRunner().invoke(app, ["summary"]).exit_code == 0
    assert not (folder / "home").exists()


@pytest.mark.parametrize("words", ["--serve --rows 3", "--serve --out page.html", "--compare-with folder"])
def test_options_of_a_page_and_of_the_served_gallery_exclude_each_other(folder: Path, words: str) -> None:
    assert CliRunner().invoke(app, ["gallery", *words.split()]).exit_code == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unknown_option_of_a_program_is_status_2(name: str) -> None:
    assert CliRunner().invoke(PROGRAMS[name], ["--no-such-option"]).exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        "summary",
        "gallery all",
        "gallery all --rejects",
        "audit rl",
        "export rl --layout trl_grpo",
        "annotate report",
        "annotate report --payments",
        "annotate finish",
    ],
)
def test_an_empty_home_is_told_which_command_fills_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("DARKROOM_HOME", str(folder / "home"))
    (line,) = CliRunner().invoke(app, shlex.split(words)).output.splitlines()
    assert re.search(r"(yet|dataset)\. Run: darkroom \w+", line), line


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
