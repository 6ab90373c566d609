"""A program that works beside a command's own jobs."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from darkroom.assets.builds.child_process import BAR, child_build
from darkroom.assets.builds.jobs import MaterializationFailed
from darkroom.assets.clusters.programs import Program

pytestmark = pytest.mark.e2e

STEPS = [f"{BAR}step {number}/3" for number in (1, 2, 3)]


def little(*words: str) -> Program:
    return Program("tests.assets.little", words)


def test_its_lines_are_whole_and_marked_and_the_command_waits_for_it() -> None:
    output = StringIO()
    with child_build(Console(file=output), little()) as other:
        other.start()
        other.start()  # starts nothing more
    assert output.getvalue().splitlines() == STEPS


def test_it_is_started_at_the_end_if_nothing_started_it() -> None:
    output = StringIO()
    with child_build(Console(file=output), little()):
        assert not output.getvalue()
    assert output.getvalue().splitlines() == STEPS


def test_what_it_has_marked_is_waited_for_and_not_its_end() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_for_half("marks half", then=ZeroDivisionError())


def test_its_error_comes_where_a_mark_is_waited_for() -> None:
    with pytest.raises(MaterializationFailed, match=r"^no dataset$"):
        wait_for_half("no dataset", then=AssertionError("the error is late"))


def wait_for_half(words: str, *, then: Exception) -> None:
    with child_build(Console(file=StringIO()), little(words)) as other:
        other.wait("half")
        raise then  # which ends it, too


def test_its_error_is_the_commands() -> None:
    with (
        pytest.raises(MaterializationFailed, match=r"^no dataset$"),
        child_build(Console(file=StringIO()), little("no dataset")),
    ):
        pass


def test_an_error_of_the_commands_own_jobs_ends_it() -> None:
    before = children()
    with pytest.raises(ZeroDivisionError):
        fail_beside_a_server()
    assert children() == before


def fail_beside_a_server() -> None:
    before, server = children(), Program("http.server", ("0", "--bind", "127.0.0.1"))
    with child_build(Console(file=StringIO()), server) as other:
        other.start()
        assert children() != before
        raise ZeroDivisionError


def children() -> str:
    """Of this process's main thread."""
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
