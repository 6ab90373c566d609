"""`darkroom annotate`: the annotation server, its people, and the rounds."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from annotation.campaign import Campaign
    from annotation.exchange import Synced
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
console = Console()
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


@contextmanager
def _workspace() -> Iterator[Workspace]:
    """The workspace; what a user can mend is said in one paragraph and ends with status 1."""
    from annotation.faults import AnnotationFault
    from pipelines.decontamination import DecontaminationFault
    from pipelines.serving.faults import ServingFault
    from pipelines.tables import TableMissing
    from pipelines.workspace import Workspace

    try:
        with Workspace.from_environment() as workspace:
            yield workspace
    except (AnnotationFault, DecontaminationFault, ServingFault, TableMissing) as fault:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(fault)))
        raise typer.Exit(1) from fault


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

    with _workspace() as workspace:
        home = studio_home(workspace)
        server = home.start(host=host, port=port, postgres=postgres)
        with console.status("Label Studio starts …") as status:
            wait_until_ready(server, report=lambda seconds: status.update(f"Label Studio starts … {seconds:.0f} s"))
        console.print(f"[bold]{server.url}[/bold]  database: {server.database}", highlight=False)
        console.print(f"log in as {home.admin.email}, password {home.admin.password}", highlight=False, soft_wrap=True)


@app.command()
def down() -> None:
    """Stop the server. Accounts, projects and annotations stay."""
    from annotation.connection import studio_home

    with _workspace() as workspace:
        console.print("stopped" if studio_home(workspace).stop() else "no server was running")


@app.command()
def status() -> None:
    """Show the server and how many records are where; exits with 1 when the server does not answer."""
    from annotation.connection import studio_home
    from annotation.server import is_ready

    with _workspace() as workspace:
        server = studio_home(workspace).find()
        running = server is not None and server.process.is_running and is_ready(server)
        said = f"{server.url} ({server.database})" if server else "no server was started"
        console.print(f"{said}: {'answers' if running else 'does not answer'}", highlight=False)
        raise typer.Exit(0 if running else 1)


@app.command()
def init() -> None:
    """Write an example campaign, to be changed."""
    from annotation.campaign import FILE

    with _workspace() as workspace:
        path = workspace.annotation / FILE
        if path.exists():
            raise typer.BadParameter(f"{path} is there already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(EXAMPLE)
        console.print(f"wrote {path}; next: put images there, then `darkroom annotate sync`", soft_wrap=True)


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

    with _workspace() as workspace, connect(workspace) as studio:
        known = {person.email for person in studio.people()}
        for email in emails:
            chosen = password or secrets.token_urlsafe(9)
            made = studio.add_person(email, role=role, password=chosen)
            said = f"{made['email']}: {role}"
            console.print(said if email.lower() in known else f"{said}, password {chosen}", highlight=False)


@users.command(name="list")
def list_users() -> None:
    """Show the accounts."""
    from annotation.connection import connect

    with _workspace() as workspace, connect(workspace) as studio:
        table = Table("account", "name", "role")
        for person in studio.people():
            table.add_row(person.email, person.name, person.role or "none")
        console.print(table)


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

    with _workspace() as workspace, Journal(workspace.annotation) as journal:
        while True:
            try:
                _sync_once(workspace, journal, reset_forms=reset_forms, recreate=recreate)
            except ServerUnreachable as fault:
                if every is None:
                    raise
                console.print(f"[bold red]waiting:[/bold red] {fault}", highlight=False)
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
    with console.status("images …") as line:
        report = materialize_pool(
            workspace, campaign, workspace.annotation, progress=lambda n, of: line.update(f"images {n:,} of {of:,}")
        )
    if not report.reused:
        console.print(f"pool: {report.n_out:,} images, {report.n_rejected + report.n_quarantined:,} left out")
    pool = workspace.tables.read(POOL, PoolImage)
    with connect(workspace) as studio:
        run = Sync(journal, studio, campaign, read_predictions(workspace, pool), say=console.print)
        synced = run.run(pool, reset_forms=reset_forms, recreate=recreate)
    went = ", ".join(f"{n:,} × {round}" for round, n in synced.imported.items()) or "nothing"
    console.print(f"came in: {synced.n_revisions:,} submissions; went out: {went}", highlight=False)
    _print_places(_stages(workspace, campaign, journal))


@app.command()
def record(
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    note: Annotated[str, typer.Option(help="How it came about, for whoever looks at its tables.")] = "",
) -> None:
    """Write the campaign to one file, as of the last sync: tasks and annotations as Label Studio gave them.

    People get made-up addresses; what they wrote into comments stays. No images are inside.
    `darkroom annotate take-in` makes the tables from it where no server runs.
    """
    from annotation.campaign import Campaign
    from annotation.journal import Journal
    from annotation.pool import POOL
    from annotation.recording import record, write_recording
    from pipelines.records import PoolImage

    with _workspace() as workspace, Journal(workspace.annotation) as journal:
        pool = workspace.tables.read(POOL, PoolImage)
        recording = record(journal, Campaign.load(workspace.annotation), pool, note=note)
        write_recording(recording, out)
        said = f"{len(recording.images):,} images, {len(recording.tasks):,} tasks"
        console.print(f"wrote {out}: {said}", highlight=False, soft_wrap=True)


@app.command(name="take-in")
def take_in(
    recording: Annotated[
        Path | None, typer.Argument(help="What `darkroom annotate record` wrote; default: the demo's, bundled.")
    ] = None,
) -> None:
    """Take a recorded campaign in, where no server runs: every submission is checked again, as from a server.

    Images are found in the workspace by their content (the demo's: `darkroom demo` takes them in); a missing one is
    set aside. Its tables are a partition of their own: a campaign in the same workspace stays as it is.
    """
    from annotation.recorded_campaign import RecordedCampaign
    from annotation.recording import BUNDLED, read_recording

    with _workspace() as workspace:
        campaign = RecordedCampaign(workspace, read_recording(recording or BUNDLED))
        pool = campaign.materialize_pool()
        console.print(f"pool: {pool.n_out:,} images, {pool.n_in - pool.n_out:,} set aside", highlight=False)
        with campaign.stages(say=console.print) as stages:
            stages.materialize(stages.read())
            _print_places(stages)


@app.command()
def review(
    rows: Annotated[int, typer.Option(min=1, help="Of each family, chosen by the campaign's seed.")] = 20,
    family: Annotated[
        list[str] | None, typer.Option("--family", help="Only this family; can be repeated. Default: all.")
    ] = None,
) -> None:
    """Hand accepted trajectories out to experts, and take their verdicts in.

    What experts reject is left out when the datasets ship, the card says how many they accept, and
    `darkroom calibrate` measures judges against them (<home>/annotation/reviews.jsonl). Run it again to take verdicts
    in; more --rows later keep what was chosen.
    """
    from annotation.campaign import Campaign
    from annotation.connection import connect
    from annotation.journal import Journal
    from annotation.queues import read_verdicts
    from annotation.review import ROUND, ReviewQueue
    from pipelines.recipes import load_recipes
    from pipelines.reviews import acceptance, read_reviews

    with _workspace() as workspace, Journal(workspace.annotation) as journal:
        recipes = [recipe for name, recipe in load_recipes().items() if not family or name in family]
        queue = ReviewQueue(workspace, Campaign.load(workspace.annotation), journal)
        with connect(workspace) as studio:
            synced = queue.sync(studio, recipes, n_rows=rows)
        queue.materialize(recipes)
        console.print(
            f"went out: {sum(synced.imported.values()):,}; waiting: {read_verdicts(journal, ROUND).n_waiting:,}"
        )
        table = Table("family", "reviewed", "accepted", "95 % interval")
        for recipe in recipes:
            share = acceptance(read_reviews(workspace.tables, recipe.family))
            low, high = share.interval
            table.add_row(recipe.family, str(share.of), str(share), f"{low:.0%} to {high:.0%}" if share.of else "–")
        console.print(table)


@app.command()
def verify(
    source: Annotated[str, typer.Argument(help="Whose samples; `darkroom materialize` took them in.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="So many, chosen by the campaign's seed; default: all.")
    ] = None,
    disputed: Annotated[
        bool, typer.Option("--disputed", help="Those whose labels `checked_labels` found disputed, instead.")
    ] = False,
) -> None:
    """Have people say whether image, question and answer of a source's samples belong together.

    Run it again to take verdicts in; more --rows later keep what was chosen.
    """
    from annotation.campaign import Campaign
    from annotation.connection import connect
    from annotation.journal import Journal
    from annotation.queues import read_verdicts
    from annotation.verification import ROUND, VerificationQueue

    with _workspace() as workspace, Journal(workspace.annotation) as journal:
        queue = VerificationQueue(workspace, Campaign.load(workspace.annotation), journal, source)
        with connect(workspace) as studio:
            if disputed:
                synced, left_out = queue.sync_disputed(studio, queue.disputed())
                console.print(f"disputed without an image, left out: {len(left_out):,}", highlight=False)
            else:
                synced = queue.sync(studio, n_rows=rows)
        queue.materialize()
        _print_queue(synced, read_verdicts(journal, ROUND).n_waiting, queue.counts())


@app.command()
def suitability(
    source: Annotated[str, typer.Argument(help="Whose problems; `darkroom materialize` took them in.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="So many, chosen by the campaign's seed; default: all.")
    ] = None,
    category: Annotated[str, typer.Option(help="Of which category the problems are.")] = "maths",
) -> None:
    """Have people say whether a drawing would help with a source's maths problems, blind to what models voted.

    Run it again to take in what they said; more --rows later keep what was chosen. <home>/annotation/suitability.jsonl
    holds their words as labels, against which the vote is calibrated.
    """
    from annotation.campaign import Campaign
    from annotation.connection import connect
    from annotation.journal import Journal
    from annotation.queues import read_verdicts
    from annotation.suitability import ROUND, SuitabilityQueue

    with _workspace() as workspace, Journal(workspace.annotation) as journal:
        queue = SuitabilityQueue(workspace, Campaign.load(workspace.annotation), journal, source, category)
        with connect(workspace) as studio:
            synced = queue.sync(studio, n_rows=rows)
        queue.materialize()
        _print_queue(synced, read_verdicts(journal, ROUND).n_waiting, queue.counts())


def _print_queue(synced: Synced, n_waiting: int, counts: Counter[str]) -> None:
    said = ", ".join(f"{verdict} {n:,}" for verdict, n in sorted(counts.items())) or "no verdict yet"
    console.print(f"went out: {sum(synced.imported.values()):,}; waiting: {n_waiting:,}; {said}", highlight=False)


@app.command()
def report(
    out: Annotated[Path | None, typer.Option(help="Default: <home>/annotation/report.html.")] = None,
) -> None:
    """Write one HTML page: how far the rounds are, agreement, planted errors, and a table of everybody's work."""
    from annotation.campaign import Campaign
    from annotation.journal import Journal
    from annotation.quality import measure
    from annotation.report import write_report

    with _workspace() as workspace, Journal(workspace.annotation) as journal:
        campaign = Campaign.load(workspace.annotation)
        states = [kept.state for kept in _stages(workspace, campaign, journal).read().kept]
        quality = measure(states, hits=journal.hits(), people=journal.people().values())
        path = write_report(quality, out or workspace.annotation / "report.html", title=campaign.name)
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _stages(workspace: Workspace, campaign: Campaign, journal: Journal) -> AnnotationStages:
    from annotation.connection import find_task_url
    from annotation.stages import AnnotationStages

    return AnnotationStages(workspace, campaign, journal, find_task_url(workspace))


def _print_places(stages: AnnotationStages) -> None:
    places = Counter(
        f"waiting for {one.state.round}" if one.state.stage == "waiting" else one.state.stage
        for one in stages.read().kept
    )
    console.print("  ".join(f"{place} {n:,}" for place, n in places.items()), highlight=False)


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
