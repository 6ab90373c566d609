"""The boundary of the commands: one line on stderr, a status, and the traceback only for who wants it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
import typer
from typer.testing import CliRunner

from darkroom.pipelines.command_line.errors import CLOSED_PIPE, UNFORESEEN, CommandGroup, describe, program_of
from darkroom.pipelines.storage.storage_errors import StorageError
from darkroom.sandbox.errors import SandboxClosed, UserError


class Halved(UserError):
    """An error with a status of its own."""

    exit_status = 3


def disk(number: int, path: str | None = "/data/rows.parquet") -> OSError:
    return OSError(number, "as the system says", path)


@pytest.mark.parametrize(
    ("error", "words", "status"),
    [
        (StorageError("the bucket is not there"), "the bucket is not there", 1),
        (Halved("half of it"), "half of it", 3),
        (SandboxClosed("closed"), "closed", 1),
        (disk(errno.ENOSPC), "cannot use /data/rows.parquet: as the system says. To do: free or enlarge the disk", 1),
        (disk(errno.ENOSPC, None), "cannot use the disk: ", 1),
        (disk(errno.EROFS), "DARKROOM_HOME", 1),
        (disk(errno.ENOENT), "/data/rows.parquet: as the system says. To do: check the path", 1),
        (sa.exc.DatabaseError("select", {}, Exception("malformed")), "DARKROOM_LEDGER", 1),
        (MemoryError(), "not enough memory", 1),
        (ZeroDivisionError("division\nby zero"), "unforeseen ZeroDivisionError: division. ", UNFORESEEN),
        (KeyError(), "unforeseen KeyError", UNFORESEEN),
    ],
)
def test_every_error_has_one_line_and_a_status(error: Exception, words: str, status: int) -> None:
    text, found = describe(error)
    assert words in text
    assert "\n" not in text
    assert found == status


def program(error: Exception | None) -> typer.Typer:
    def main(path: Path = Path()) -> None:
        if error is not None:
            raise error

    return program_of(main)


def test_a_traceback_is_printed_only_with_debug() -> None:
    without = CliRunner().invoke(program(ZeroDivisionError("no")), ["--path", "x"])
    assert without.exit_code == UNFORESEEN
    assert without.stderr.startswith("error: unforeseen ZeroDivisionError")
    assert "Traceback" not in without.output
    shown = CliRunner().invoke(program(UserError("mend it")), ["--path", "x", "--debug"])
    assert shown.exit_code == 1
    assert "Traceback" in shown.stderr
    assert shown.stderr.rstrip().endswith("error: mend it")


@pytest.mark.parametrize(("words", "status"), [([], 0), (["--nope"], 2), (["--", "--debug"], 2)])
def test_other_statuses_are_those_of_typer(words: list[str], status: int) -> None:
    assert CliRunner().invoke(program(None), words).exit_code == status


def test_ctrl_c_is_one_line_and_its_status() -> None:
    def main() -> None:
        raise KeyboardInterrupt

    interrupted = CliRunner().invoke(program_of(main), [])
    assert (interrupted.exit_code, interrupted.stderr) == (130, "interrupted\n")


def test_ctrl_c_is_one_line_however_deep_the_command_is_grouped() -> None:
    outer, inner = typer.Typer(cls=CommandGroup), typer.Typer(cls=CommandGroup)
    inner.callback()(lambda: None)
    outer.add_typer(inner, name="inner")

    @inner.command()
    def wait() -> None:
        raise KeyboardInterrupt

    interrupted = CliRunner().invoke(outer, ["inner", "wait"])
    assert (interrupted.exit_code, interrupted.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [("typer.echo('a row')", []), ("SafeConsole().print('a row')", []), ("None", ["--help"])],
)
def test_a_command_ends_quietly_where_the_reader_of_its_output_has_ended(line: str, words: list[str]) -> None:
    program = (
        "import typer\n"
        "from darkroom.pipelines.command_line.errors import program_of\n"
        "from darkroom.sandbox.terminal import SafeConsole\n"
        f"program_of(lambda: {line})()\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", program, *words]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (CLOSED_PIPE, b"")


def test_control_characters_of_an_error_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in CliRunner().invoke(program(UserError("a\x1b]0;title\x07b")), []).stderr
