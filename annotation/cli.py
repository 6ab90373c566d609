"""`darkroom annotate`: the annotation server, its people, and the rounds."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from annotation.commands.queues import review, suitability, verify
from annotation.commands.recordings import record, take_in
from annotation.commands.terminal import CONSOLE, open_workspace, print_places

if TYPE_CHECKING:
    from annotation.campaign import Campaign
    from annotation.journal import Journal
    from annotation.stages import AnnotationStages
    from pipelines.workspace import Workspace

app = typer.Typer(
    no_args_is_help=True,
    help="Human annotation in Label Studio: write, cross-check, accept.\n\n"
    "`up` starts a server, `users add` makes accounts, `init` writes an example campaign, `sync` hands out work and "
    "takes results in, `report` shows how it goes.",
)
users = typer.Typer(no_args_is_help=True, help="Accounts of annotators and experts.")
app.add_typer(users, name="users")
EXAMPLE = """\
# What people are asked to do; the fields and their meaning: annotation/campaign.py
name: streets
images:
  - path: images          # a folder, or a pattern like photographs/*.jpg; relative to this file
    source: our-cameras
    license: CC-BY-4.0
min_side: 2048            # the longer side has more pixels than this
max_share: 0.05           # of the image's area, for every box
"""


@app.command()
def up(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: a free one.")] = None,
    host: Annotated[str, typer.Option(help="0.0.0.0 lets other machines in.")] = "127.0.0.1",
    postgres: Annotated[
        str | None,
        typer.Option(
            help="postgresql://USER:PASSWORD@HOST:PORT/NAME. For more than one person: SQLite may hand one task to two."
        ),
    ] = None,
) -> None:
    """Start Label Studio, installing it at the first time, and wait until it answers.

    It runs until `darkroom annotate down`. Telemetry is off and sign-up is closed.
    """
    from annotation.connection import studio_home
    from annotation.server import wait_until_ready

    with open_workspace() as workspace:
        home = studio_home(workspace)
        server = home.start(host=host, port=port, postgres=postgres)
        with CONSOLE.status("Label Studio starts …") as status:
            wait_until_ready(server, report=lambda seconds: status.update(f"Label Studio starts … {seconds:.0f} s"))
        CONSOLE.print(f"[bold]{server.url}[/bold]  database: {server.database}", highlight=False)
        CONSOLE.print(f"log in as {home.admin.email}, password {home.admin.password}", highlight=False, soft_wrap=True)


@app.command()
def down() -> None:
    """Stop the server. Accounts, projects and annotations stay."""
    from annotation.connection import studio_home

    with open_workspace() as workspace:
        CONSOLE.print("stopped" if studio_home(workspace).stop() else "no server was running")


@app.command()
def status() -> None:
    """Show the server and how many records are where; exits with 1 when the server does not answer."""
    from annotation.connection import studio_home
    from annotation.server import is_ready

    with open_workspace() as workspace:
        server = studio_home(workspace).find()
        running = server is not None and server.process.is_running and is_ready(server)
        said = f"{server.url} ({server.database})" if server else "no server was started"
        CONSOLE.print(f"{said}: {'answers' if running else 'does not answer'}", highlight=False)
        raise typer.Exit(0 if running else 1)


@app.command()
def init() -> None:
    """Write an example campaign, to be changed."""
    from annotation.campaign import FILE

    with open_workspace() as workspace:
        path = workspace.annotation / FILE
        if path.exists():
            raise typer.BadParameter(f"{path} is there already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(EXAMPLE)
        CONSOLE.print(f"wrote {path}; next: put images there, then `darkroom annotate sync`", soft_wrap=True)


@users.command(name="add")
def add_users(
    emails: Annotated[list[str], typer.Argument(help="E-mail addresses.")],
    role: Annotated[str, typer.Option(help="annotator (writes and checks) or expert (accepts and reviews).")] = (
        "annotator"
    ),
    password: Annotated[str | None, typer.Option(help="Default: a new one for each, which is printed.")] = None,
) -> None:
    """Make accounts, or change the role of those that are there (their password stays).

    `darkroom annotate users add ann@example.com bob@example.com`

    `darkroom annotate users add eve@example.com --role expert`
    """
    from annotation.connection import connect

    with open_workspace() as workspace, connect(workspace) as studio:
        known = {person.email for person in studio.people()}
        for email in emails:
            chosen = password or secrets.token_urlsafe(9)
            made = studio.add_person(email, role=role, password=chosen)
            said = f"{made['email']}: {role}"
            CONSOLE.print(said if email.lower() in known else f"{said}, password {chosen}", highlight=False)


@users.command(name="list")
def list_users() -> None:
    """Show the accounts."""
    from annotation.connection import connect

    with open_workspace() as workspace, connect(workspace) as studio:
        table = Table("account", "name", "role")
        for person in studio.people():
            table.add_row(person.email, person.name, person.role or "none")
        CONSOLE.print(table)


@app.command()
def sync(
    every: Annotated[float | None, typer.Option(min=1, help="Again and again, after so many seconds.")] = None,
    reset_forms: Annotated[bool, typer.Option("--reset-forms", help="Give the projects our forms again.")] = False,
    recreate: Annotated[
        bool, typer.Option("--recreate", help="Make projects anew that are gone from the server.")
    ] = False,
) -> None:
    """Take in what people submitted, and hand out what can be done next.

    Can be killed at any moment; nothing is imported twice. Dagster's sensor does the same. With --every it also takes
    in images that were added, and waits for a server that is down.
    """
    from annotation.faults import ServerUnreachable
    from annotation.journal import Journal

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        while True:
            try:
                _sync_once(workspace, journal, reset_forms=reset_forms, recreate=recreate)
            except ServerUnreachable as fault:
                if every is None:
                    raise
                CONSOLE.print(f"[bold red]waiting:[/bold red] {fault}", highlight=False)
            else:
                reset_forms = recreate = False
            if every is None:
                return
            time.sleep(every)


def _sync_once(workspace: Workspace, journal: Journal, *, reset_forms: bool, recreate: bool) -> None:
    from annotation.campaign import Campaign
    from annotation.connection import connect
    from annotation.pool import POOL, materialize_pool
    from annotation.pre_annotations import read_predictions
    from annotation.sync import Sync
    from pipelines.records import PoolImage

    campaign = Campaign.load(workspace.annotation)
    with CONSOLE.status("images …") as line:
        report = materialize_pool(
            workspace, campaign, workspace.annotation, progress=lambda n, of: line.update(f"images {n:,} of {of:,}")
        )
    if not report.reused:
        CONSOLE.print(f"pool: {report.n_out:,} images, {report.n_rejected + report.n_quarantined:,} left out")
    pool = workspace.tables.read(POOL, PoolImage)
    with connect(workspace) as studio:
        run = Sync(journal, studio, campaign, read_predictions(workspace, pool), say=CONSOLE.print)
        synced = run.run(pool, reset_forms=reset_forms, recreate=recreate)
    went = ", ".join(f"{n:,} × {round}" for round, n in synced.imported.items()) or "nothing"
    CONSOLE.print(f"came in: {synced.n_revisions:,} submissions; went out: {went}", highlight=False)
    print_places(_stages(workspace, campaign, journal))


for command in (review, verify, suitability, record):
    app.command()(command)
app.command(name="take-in")(take_in)


@app.command()
def report(
    out: Annotated[Path | None, typer.Option(help="Default: <home>/annotation/report.html.")] = None,
) -> None:
    """Write one HTML page: how far the rounds are, agreement, planted errors, and a table of everybody's work."""
    from annotation.campaign import Campaign
    from annotation.journal import Journal
    from annotation.quality import measure
    from annotation.report import write_report

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        campaign = Campaign.load(workspace.annotation)
        states = [kept.state for kept in _stages(workspace, campaign, journal).read().kept]
        quality = measure(states, hits=journal.hits(), people=journal.people().values())
        path = write_report(quality, out or workspace.annotation / "report.html", title=campaign.name)
        CONSOLE.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _stages(workspace: Workspace, campaign: Campaign, journal: Journal) -> AnnotationStages:
    from annotation.connection import find_task_url
    from annotation.stages import AnnotationStages

    return AnnotationStages(workspace, campaign, journal, find_task_url(workspace))


@app.command()
def guide(
    out: Annotated[Path | None, typer.Option(help="Write it there instead.")] = None,
) -> None:
    """Print the guide for annotators and experts (Markdown); projects show it as their instructions."""
    from annotation.forms import GUIDE

    text = GUIDE.read_text()
    if out is None:
        typer.echo(text)
    else:
        out.write_text(text)
