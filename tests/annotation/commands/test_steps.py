from __future__ import annotations

import io

from rich.console import Console

from darkroom.annotation.commands.server import TITLES, step_lines


def test_a_file_gets_one_line_for_each_step_with_its_seconds() -> None:
    out = io.StringIO()
    with step_lines(Console(file=out)) as show:
        for step in ("install", "load", "load", "accounts"):
            show(step)
        assert out.getvalue().endswith(f"{TITLES['accounts']} … "), "a step is named while it runs"
    assert out.getvalue().splitlines() == [f"{TITLES[step]} … 0 s" for step in ("install", "load", "accounts")]


def test_a_terminal_gets_the_same_steps() -> None:
    out = io.StringIO()
    with step_lines(Console(file=out, force_terminal=True, width=100)) as show:
        show("migrate")
        show("serve")
    assert TITLES["migrate"] in out.getvalue()
    assert TITLES["serve"] in out.getvalue()


def test_an_error_leaves_the_line_of_its_step_whole() -> None:
    out = io.StringIO()
    try:
        with step_lines(Console(file=out)) as show:
            show("install")
            raise RuntimeError
    except RuntimeError:
        assert out.getvalue() == f"{TITLES['install']} … 0 s\n"
