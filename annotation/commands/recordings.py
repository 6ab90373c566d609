"""Commands that carry a campaign to where no server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotation.commands.terminal import CONSOLE, open_workspace, print_places


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

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        pool = workspace.tables.read(POOL, PoolImage)
        recording = record(journal, Campaign.load(workspace.annotation), pool, note=note)
        write_recording(recording, out)
        said = f"{len(recording.images):,} images, {len(recording.tasks):,} tasks"
        CONSOLE.print(f"wrote {out}: {said}", highlight=False, soft_wrap=True)


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

    with open_workspace() as workspace:
        campaign = RecordedCampaign(workspace, read_recording(recording or BUNDLED))
        pool = campaign.materialize_pool()
        CONSOLE.print(f"pool: {pool.n_out:,} images, {pool.n_in - pool.n_out:,} set aside", highlight=False)
        with campaign.stages(say=CONSOLE.print) as stages:
            stages.materialize(stages.read())
            print_places(stages)
