"""Commands of a campaign: init, sync, guide, record, take-in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from darkroom.annotation.commands import OpenCampaign, open_campaign, print_progress
from darkroom.annotation.commands.dry_run import print_sync_preview
from darkroom.annotation.commands.head_count import print_shortages
from darkroom.pipelines.command_line.console import CONSOLE, open_workspace

if TYPE_CHECKING:
    from darkroom.pipelines.storage.workspace import Workspace

MAX_NAMED = 20
"""Unsuitable images in a message of ``sync``; the report lists more."""


def init(
    example: Annotated[
        bool, typer.Option("--example", help="With 20 images, to try everything out without images of your own.")
    ] = False,
) -> None:
    """Write an example campaign to edit."""
    from darkroom.annotation.rounds.campaign import EXAMPLE, FILE, TRIAL, Campaign
    from darkroom.annotation.rounds.image_pool import write_trial_images

    with open_workspace() as workspace:
        path = workspace.annotation / FILE
        if path.exists():
            raise typer.BadParameter(f"{path} exists already")
        path.parent.mkdir(parents=True, exist_ok=True)
        if example:
            with CONSOLE.status("images …"):
                n_images = write_trial_images(workspace)
            Campaign.write(TRIAL, path)
            CONSOLE.print(f"wrote {path} and {n_images} images; next: `darkroom annotate sync`", soft_wrap=True)
            return
        Campaign.write(EXAMPLE, path)
        CONSOLE.print(f"wrote {path}; next: put images there, then `darkroom annotate sync`", soft_wrap=True)


def sync(
    every: Annotated[float | None, typer.Option(min=1, help="Repeat after this many seconds.")] = None,
    reset_forms: Annotated[bool, typer.Option("--reset-forms", help="Restore the forms of the projects.")] = False,
    recreate: Annotated[bool, typer.Option("--recreate", help="Recreate projects that the server lost.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would change, and change nothing.")] = False,
) -> None:
    """Pull submissions and hand out the next tasks.

    Can be interrupted at any time; nothing is imported twice. Dagster's sensor does the same. With --every it also adds
    new images, and waits for a server that is down. Changed rules of the campaign apply to tasks handed out afterwards;
    --dry-run counts them.
    """
    if dry_run:
        with open_campaign() as opened:
            print_sync_preview(opened)
        return
    from darkroom.annotation import ServerUnreachable
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.journal import Journal

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        while True:
            try:
                campaign = Campaign.load(workspace.annotation)  # its images may have changed
                _sync_once(OpenCampaign(workspace, campaign, journal), reset_forms=reset_forms, recreate=recreate)
            except ServerUnreachable as error:
                if every is None:
                    raise
                CONSOLE.print(f"[bold red]waiting:[/bold red] {error}", highlight=False)
            else:
                reset_forms = recreate = False
            if every is None:
                return
            time.sleep(every)


def _sync_once(opened: OpenCampaign, *, reset_forms: bool, recreate: bool) -> None:
    from darkroom.annotation.label_studio.server import connect
    from darkroom.annotation.rounds.campaign import require_experts
    from darkroom.annotation.rounds.image_pool import POOL, materialize_pool
    from darkroom.annotation.rounds.pre_annotations import read_predictions
    from darkroom.annotation.rounds.sync import Sync, last_version, pulled_since
    from darkroom.pipelines.records import PoolImage

    workspace, campaign, journal = opened
    with CONSOLE.status("images …") as line:
        report = materialize_pool(
            workspace, campaign, workspace.annotation, progress=lambda n, of: line.update(f"images {n:,} of {of:,}")
        )
    if not report.reused:
        CONSOLE.print(f"pool: {report.n_out:,} images, {report.n_rejected + report.n_quarantined:,} rejected")
        _print_left_out(workspace)
    pool = workspace.tables.read(POOL, PoolImage)
    before = last_version(journal)
    with connect(workspace) as studio:
        if not journal.rounds():
            require_experts(campaign, studio.accounts())
        run = Sync(journal, studio, campaign, read_predictions(workspace, pool), say=CONSOLE.print)
        counts = run.run(pool, reset_forms=reset_forms, recreate=recreate)
        print_shortages(campaign, studio)
    imported = ", ".join(f"{n:,} × {round}" for round, n in counts.imported.items()) or "nothing"
    CONSOLE.print(f"received: {pulled_since(journal, before)}; handed out: {imported}", highlight=False)
    print_progress(journal)


def _print_left_out(workspace: Workspace) -> None:
    """Names the first unsuitable images, and where all of them are."""
    from darkroom.annotation.rounds.image_pool import POOL, left_out

    rejects = left_out(workspace)
    for entry in rejects[:MAX_NAMED]:
        line = f"  {entry.source_row}: {entry.reason}, {entry.evidence}"
        CONSOLE.print(line, highlight=False, markup=False, soft_wrap=True)
    if len(rejects) > MAX_NAMED:
        path = workspace.tables.rejects_path(POOL)
        CONSOLE.print(f"  … and {len(rejects) - MAX_NAMED:,} more: {path}", highlight=False, soft_wrap=True)


def guide(
    out: Annotated[Path | None, typer.Option(help="Write it to this file instead.")] = None,
    language: Annotated[str | None, typer.Option(help="en, de, es or zh; default: the campaign's.")] = None,
) -> None:
    """Print the guide for annotators, checkers and experts (Markdown), which projects show as instructions."""
    from darkroom.annotation.label_studio.forms import GUIDES
    from darkroom.annotation.rounds.campaign import Campaign

    with open_workspace() as workspace:
        chosen = language or Campaign.load(workspace.annotation).language
        if chosen not in GUIDES:
            raise typer.BadParameter(f"there is no guide in {chosen!r}; choose from {', '.join(GUIDES)}")
        text = GUIDES[chosen].read_text(encoding="utf-8")
    if out is None:
        typer.echo(text)
    else:
        out.write_text(text, encoding="utf-8")


def record(
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    note: Annotated[str, typer.Option(help="Its origin, for readers of its tables.")] = "",
) -> None:
    """Write the campaign to one file, as of the last sync: tasks and annotations as Label Studio returned them.

    People get made-up addresses; comments are kept as written. Images are not included. `darkroom annotate take-in`
    builds the tables from it without a server.
    """
    from darkroom.annotation.recordings.format import record, write_recording
    from darkroom.annotation.rounds.image_pool import POOL
    from darkroom.pipelines.records import PoolImage

    with open_campaign() as (workspace, campaign, journal):
        pool = workspace.tables.read(POOL, PoolImage)
        recording = record(journal, campaign, pool, note=note)
        write_recording(recording, out)
        content = f"{len(recording.images):,} images, {len(recording.tasks):,} tasks"
        CONSOLE.print(f"wrote {out}: {content}", highlight=False, soft_wrap=True)


def take_in(
    recording: Annotated[
        Path | None, typer.Argument(help="A file of `darkroom annotate record`; default: the demo's, bundled.")
    ] = None,
) -> None:
    """Import a recorded campaign (no server needed); every submission is validated as from a server.

    Images are found in the workspace by content (the demo's: `darkroom demo` imports them); missing ones are rejected.
    Its tables are a separate partition: a campaign in the same workspace is not touched.
    """
    from darkroom.annotation.recordings.campaign_import import RecordedCampaign
    from darkroom.annotation.recordings.format import BUNDLED, read_recording

    with open_workspace() as workspace:
        campaign = RecordedCampaign(workspace, read_recording(recording or BUNDLED))
        pool = campaign.materialize_pool()
        CONSOLE.print(f"pool: {pool.n_out:,} images, {pool.n_in - pool.n_out:,} rejected", highlight=False)
        with campaign.stages(say=CONSOLE.print) as stages:
            stages.materialize(stages.read())
            print_progress(stages.journal)
