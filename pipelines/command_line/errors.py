"""The boundary of every command: an error that reaches it is one line on stderr and an exit status, no traceback.

Statuses: 0 done; 1 what the user can mend, and negative outcomes that a command documents; 2 a wrong command line;
70 an error that was not foreseen; 75 answers of batches are waited for; 130 Ctrl-C; 141 the output's reader has ended.
``--debug``, anywhere among the words, prints the traceback, too.
"""

import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
import typer
from rich.text import Text
from typer.core import MarkupMode, TyperCommand, TyperGroup

from darkroom.pipelines.storage.storage_errors import CLIENTS, DATABASES, AnswersPending, disk_message, sqlite_mend
from darkroom.sandbox.errors import SandboxError, UserError
from darkroom.sandbox.terminal import SafeConsole

DEBUG = "--debug"
UNFORESEEN = 70
"""As ``sysexits.h`` has it: an internal error of the software."""
CLOSED_PIPE = 141
"""Where the output's reader has ended (``| head``): the shell's status for what SIGPIPE ends."""
TABLE_COLUMNS = 80
"""In a narrower terminal typer's tables cut the names of options."""


def markup_for(columns: int) -> MarkupMode:
    """Style of a help: typer's tables, or click's lists in a narrow terminal."""
    return "markdown" if columns >= TABLE_COLUMNS else None


MARKUP = markup_for(shutil.get_terminal_size().columns)


def own_words(args: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """A command line, by default the process's own, and what of it follows from ``--`` on: another program's."""
    words = sys.argv[1:] if args is None else list(args)
    n_own = words.index("--") if "--" in words else len(words)
    return words[:n_own], words[n_own:]


class _Boundary:
    """Mixed into a command of typer."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run ``args``, or the process's own."""
        own, others = own_words(args)
        words = [word for word in own if word != DEBUG]
        output = _output()
        try:
            with errors_as_messages(with_traceback=DEBUG in own):
                return super().main([*words, *others], *rest, **options)  # type: ignore[misc]  # typer's, which it is mixed into
        except SystemExit as end:
            # rich, whose status is 1, had the output go nowhere: its reader has ended
            if end.code == 1 and _output() != output:
                raise SystemExit(CLOSED_PIPE) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Report Ctrl-C, and end with ``CLOSED_PIPE`` where the output's reader has ended; typer does neither."""
        try:
            return super().invoke(ctx)  # type: ignore[misc]  # typer's, which it is mixed into
        except KeyboardInterrupt:
            if ctx.parent is None:  # once, not by each group that the command is in
                SafeConsole(stderr=True).print("interrupted")
            raise
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains as it ends
            raise typer.Exit(CLOSED_PIPE) from None


class CommandGroup(_Boundary, TyperGroup):
    """Commands below one name."""


class SingleCommand(_Boundary, TyperCommand):
    """A program with one command."""


def _output() -> tuple[int, int]:
    """Identity of the standard output; zeros where there is none."""
    try:
        status = os.fstat(1)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def program_of(main: Callable[..., Any]) -> typer.Typer:
    """Make a program of a function like ``typer.run``, within the boundary; call it to run it."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=MARKUP)
    app.command(cls=SingleCommand)(main)
    return app


@contextmanager
def errors_as_messages(*, with_traceback: bool = False) -> Iterator[None]:
    """Ends the process with one line and a status where an error is raised within."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # what a user meets last
        if with_traceback:
            traceback.print_exception(error)
        text, status = describe(error)
        head = ("error: ", "bold red") if status != AnswersPending.exit_status else ""
        SafeConsole(stderr=True).print(Text.assemble(head, text), soft_wrap=True)
        sys.exit(status)


def describe(error: Exception) -> tuple[str, int]:
    if isinstance(error, UserError):
        return str(error), error.exit_status
    if isinstance(error, SandboxError):
        return str(error), 1
    if isinstance(error, OSError):
        where = str(error.filename or "")
        if message := disk_message(where or "the disk", error):
            return message, 1
        if where and error.strerror:
            return f"{where}: {error.strerror}. To do: check the path", 1
    if isinstance(error, MemoryError):
        return "not enough memory. To do: free some, or work on fewer rows at a time", 1
    kind = type(error)
    reason = (str(error).strip().splitlines() or ["no reason was given"])[0]
    if kind.__module__.split(".")[0] in CLIENTS:
        return f"an object store or the network failed ({reason}). To do: check the network, then run again", 1
    if kind.__module__.split(".")[0] in DATABASES:
        mend = sqlite_mend(reason) or "check DARKROOM_LEDGER and the disk"
        return f"a database failed ({reason}). To do: {mend}, then run again: finished work is kept", 1
    what_to_do = f"Run the command again with {DEBUG} and report what it prints"
    return f"unforeseen {kind.__name__}: {reason}. {what_to_do}", UNFORESEEN
