"""Commands that copy a campaign: backup, restore, export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from darkroom.annotation.commands.opened import open_campaign, print_progress
from darkroom.pipelines.command_line.console import CONSOLE, open_workspace, print_plain


def backup(target: Annotated[Path, typer.Argument(help="A new folder.")]) -> None:
    """Copy the campaign to a new folder while the server runs: its database, the journal, secrets and rules.

    Images are not included. Who can read the backup can log in as the administrator.

    `darkroom annotate backup /backups/$(date +%F)`
    """
    from darkroom.annotation.rounds.backup import back_up

    with open_workspace() as workspace:
        back_up(workspace.annotation, target, say=CONSOLE.print)
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        print_plain(f"wrote {target}: {size / 1e6:,.1f} MB")


def restore(
    source: Annotated[Path, typer.Argument(help="A folder of `darkroom annotate backup`.")],
    postgres: Annotated[str | None, typer.Option(help="Empty PostgreSQL database: URL with user and password.")] = None,
) -> None:
    """Bring a backup back into a workspace without a campaign, of the same version of Darkroom or an earlier one.

    Then `darkroom annotate up`, and `doctor` for what people did after the backup.
    """
    from darkroom.annotation.label_studio.server import note_act
    from darkroom.annotation.rounds.backup import restore as bring_back

    with open_workspace() as workspace:
        with CONSOLE.status("restoring …"):
            bring_back(source, workspace.annotation, postgres=postgres)
        note_act(workspace, f"restore {source.absolute()}")
        print_plain(f"restored {workspace.annotation}; next: `darkroom annotate up`")


def export_campaign(
    out: Annotated[Path, typer.Argument(help="The file to write.")],
    note: Annotated[str, typer.Option(help="Its origin, for readers of its tables.")] = "",
) -> None:
    """Write the campaign to one file, as of the last sync: tasks and annotations as Label Studio returned them.

    People get made-up addresses; comments are kept as written. Images are not included. `darkroom annotate import`
    builds the tables from it without a server.
    """
    from darkroom.annotation.recordings.format import record, write_recording
    from darkroom.annotation.rounds.image_pool import POOL
    from darkroom.pipelines.records import PoolImage

    with open_campaign() as (workspace, campaign, journal):
        recording = record(journal, campaign, workspace.tables.read(POOL, PoolImage), note=note)
        write_recording(recording, out)
        print_plain(f"wrote {out}: {len(recording.images):,} images, {len(recording.tasks):,} tasks")


def import_campaign(
    recording: Annotated[Path | None, typer.Argument(help="File of `darkroom annotate export`, else the demo.")] = None,
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
        print_plain(f"pool: {pool.n_out:,} images, {pool.n_in - pool.n_out:,} rejected")
        with campaign.stages(say=CONSOLE.print) as stages:
            stages.materialize(stages.read())
            print_progress(stages.journal)
