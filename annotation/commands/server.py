"""Commands of the annotation server: up, down, status; the steps of a start are shown with their seconds."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from darkroom.annotation.commands.opened import print_shortages
from darkroom.pipelines.command_line.console import CONSOLE, AsJson, open_workspace, print_json, print_plain
from darkroom.pipelines.processes.process_sessions import signals_handled
from darkroom.pipelines.storage.atomic_write import write_whole

if TYPE_CHECKING:
    from darkroom.annotation.label_studio.server import LabelStudioServer, ServerInfo
    from darkroom.pipelines.storage.workspace import Workspace


def up(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: as before, at first a free one.")] = None,
    host: Annotated[
        str | None,
        typer.Option(help="Default: the last start's, at first 127.0.0.1. 0.0.0.0: reachable from other machines."),
    ] = None,
    postgres: Annotated[
        str | None,
        typer.Option(
            help="URL of a PostgreSQL database, with user and password. For more than one person: on SQLite two people "
            "may get the same task."
        ),
    ] = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay until it ends, and stop it on Ctrl-C or SIGTERM (for systemd).")
    ] = False,
    units: Annotated[
        Path | None,
        typer.Option(help="Write systemd units of server and sync to this folder (/etc/systemd/system) instead."),
    ] = None,
) -> None:
    """Start Label Studio (installed on first use) and wait until it answers.

    It runs until `darkroom annotate down`. After a crash, `up` keeps its address and everybody's login: open
    pages live on. Ctrl-C before it answers stops what was started. Telemetry is off and sign-up is closed.

    `darkroom annotate up --units /etc/systemd/system && systemctl daemon-reload`
    """
    from darkroom.annotation.label_studio.server import current_step, note_act, server_of, wait_until_ready
    from darkroom.annotation.label_studio.server_files import service_units

    if units and (port or host or postgres or foreground):
        raise typer.BadParameter("--units starts nothing: give --port, --host and --postgres to `annotate up` itself")
    with open_workspace() as workspace:
        if units is not None:
            for name, text in service_units(workspace).items():
                write_whole(units / name, text)
                print_plain(f"wrote {units / name}")
            return
        server = server_of(workspace)
        with _stopped_at_the_end(server) if foreground else _stopped_by_ctrl_c(server):
            with step_lines(CONSOLE) as show:
                info = server.start(host=host, port=port, postgres=postgres, progress=show)
                wait_until_ready(info, report=lambda seconds: show(current_step(info)))
            note_act(workspace, f"up at {info.url}, database {info.database}")
            print_plain(f"[bold]{info.url}[/bold]  database: {info.database}")
            admin = server.admin
            print_plain(f"log in as {admin.email}, password {admin.password}")
            _print_shortages(workspace)
            if foreground:
                _follow(server, info)


def _print_shortages(workspace: Workspace) -> None:
    """Print the shortages of the workspace's campaign, once there is one."""
    from darkroom.annotation import AnnotationError
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.rounds.campaign import FILE, Campaign

    if not (workspace.annotation / FILE).exists():
        return
    try:
        campaign = Campaign.load(workspace.annotation)
    except AnnotationError as error:  # the server runs all the same
        print_plain(f"[bold red]campaign:[/bold red] {error}")
        return
    with connect(workspace, {}) as studio:
        print_shortages(campaign, studio)


@contextmanager
def _stopped_at_the_end(server: LabelStudioServer) -> Iterator[None]:
    """Stop the server when the block ends, on SIGTERM and Ctrl-C as well."""

    def end(number: int, frame: object) -> None:
        raise typer.Exit(0)

    with signals_handled(end, signal.SIGTERM, signal.SIGINT):
        try:
            yield
        finally:
            server.stop()


@contextmanager
def _stopped_by_ctrl_c(server: LabelStudioServer) -> Iterator[None]:
    """Stop the server that the block started if it is interrupted; an earlier one keeps running."""
    before = server.find()
    try:
        yield
    except KeyboardInterrupt:
        if server.find() != before:
            server.stop()
        raise


def _follow(server: LabelStudioServer, info: ServerInfo) -> None:
    """Wait until `darkroom annotate down`. Raises ``AnnotationError`` when the server ends by itself."""
    from darkroom.annotation import AnnotationError
    from darkroom.annotation.label_studio.server import log_tail

    while info.process.is_running:
        time.sleep(1)
    for _ in range(5):  # `down` removes the record after the process has ended
        if server.find() != info:
            return
        time.sleep(1)
    raise AnnotationError(f"Label Studio has ended. {log_tail(info)}")


def down() -> None:
    """Stop the server. Accounts, projects and annotations are kept."""
    from darkroom.annotation.label_studio.server import server_of

    with open_workspace() as workspace:
        CONSOLE.print("stopped" if server_of(workspace).stop() else "no server was running")


def status(as_json: AsJson = False) -> None:
    """Show the server; exit with 1 if it does not answer."""
    from darkroom.annotation.label_studio.server import is_ready, server_of

    with open_workspace() as workspace:
        info = server_of(workspace).find()
        answers = info is not None and info.process.is_running and is_ready(info)
        if as_json:
            print_json({"url": info and info.url, "database": info and info.database, "answers": answers})
        elif info is None:
            print_plain("no server was started. Run: darkroom annotate up")
        else:
            state = "answers" if answers else "does not answer. Run: darkroom annotate up"
            print_plain(f"{info.url} ({info.database}): {state}")
        raise typer.Exit(0 if answers else 1)


TITLES = {
    "install": "install Label Studio (about 800 megabytes, once)",
    "migrate": "migrate the database (once)",
    "load": "load Label Studio",
    "accounts": "accounts",
    "serve": "start the workers",
}


@contextmanager
def step_lines(console: Console) -> Iterator[Callable[[str], None]]:
    """Show the steps of a start, each with its seconds; the function takes the step under way, as often as needed."""
    step, start, task = "", 0.0, TaskID(0)
    columns = (SpinnerColumn(finished_text=" "), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console) if console.is_terminal else nullcontext() as progress:

        def show(name: str) -> None:
            nonlocal step, start, task
            if name == step:
                return
            if progress is None:  # for a file or a pipe
                text = f"{time.monotonic() - start:.0f} s\n" if step else ""
                text += f"{TITLES[name]} … " if name else ""
                console.print(text, end="", highlight=False, soft_wrap=True)
                console.file.flush()
            else:
                if step:
                    progress.update(task, completed=1)
                task = progress.add_task(TITLES[name], total=1) if name else task
            step, start = name, time.monotonic()

        try:
            yield show
        finally:
            show("")
