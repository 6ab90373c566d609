"""Commands of the annotation server and its accounts: up, down, status, users."""

import secrets
from typing import Annotated

import typer
from rich.table import Table

from annotation.commands import CONSOLE, open_workspace

users = typer.Typer(no_args_is_help=True, help="Accounts of annotators and experts.")


def up(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: a free one.")] = None,
    host: Annotated[str, typer.Option(help="0.0.0.0 makes it reachable from other machines.")] = "127.0.0.1",
    postgres: Annotated[
        str | None,
        typer.Option(
            help="postgresql://USER:PASSWORD@HOST:PORT/NAME. For more than one person: on SQLite two people may get "
            "the same task."
        ),
    ] = None,
) -> None:
    """Start Label Studio (installed on first use) and wait until it answers.

    It runs until `darkroom annotate down`. Telemetry is off and sign-up is closed.
    """
    from annotation.label_studio.server import server_of, wait_until_ready

    with open_workspace() as workspace:
        server = server_of(workspace)
        info = server.start(host=host, port=port, postgres=postgres)
        with CONSOLE.status("Label Studio starts …") as status:
            wait_until_ready(info, report=lambda seconds: status.update(f"Label Studio starts … {seconds:.0f} s"))
        CONSOLE.print(f"[bold]{info.url}[/bold]  database: {info.database}", highlight=False)
        admin = server.admin
        CONSOLE.print(f"log in as {admin.email}, password {admin.password}", highlight=False, soft_wrap=True)


def down() -> None:
    """Stop the server. Accounts, projects and annotations are kept."""
    from annotation.label_studio.server import server_of

    with open_workspace() as workspace:
        CONSOLE.print("stopped" if server_of(workspace).stop() else "no server was running")


def status() -> None:
    """Show the server; exit with 1 if it does not answer."""
    from annotation.label_studio.server import is_ready, server_of

    with open_workspace() as workspace:
        info = server_of(workspace).find()
        running = info is not None and info.process.is_running and is_ready(info)
        name = f"{info.url} ({info.database})" if info else "no server was started"
        CONSOLE.print(f"{name}: {'answers' if running else 'does not answer'}", highlight=False)
        raise typer.Exit(0 if running else 1)


@users.command(name="add")
def add_users(
    emails: Annotated[list[str], typer.Argument(help="E-mail addresses.")],
    role: Annotated[str, typer.Option(help="annotator (writes and checks) or expert (accepts and reviews).")] = (
        "annotator"
    ),
    password: Annotated[str | None, typer.Option(help="Default: a new one for each account, which is printed.")] = None,
) -> None:
    """Create accounts, or change the role of existing ones (their password is kept).

    `darkroom annotate users add ann@example.com bob@example.com`

    `darkroom annotate users add eve@example.com --role expert`
    """
    from annotation.label_studio.server import connect

    with open_workspace() as workspace, connect(workspace) as studio:
        existing = {person.email for person in studio.people()}
        for email in emails:
            new_password = password or secrets.token_urlsafe(9)
            account = studio.add_person(email, role=role, password=new_password)
            line = f"{account['email']}: {role}"
            CONSOLE.print(line if email.lower() in existing else f"{line}, password {new_password}", highlight=False)


@users.command(name="list")
def list_users() -> None:
    """Show the accounts."""
    from annotation.label_studio.server import connect

    with open_workspace() as workspace, connect(workspace) as studio:
        table = Table("account", "name", "role")
        for person in studio.people():
            table.add_row(person.email, person.name, person.role or "none")
        CONSOLE.print(table)
