"""Commands of backups: backup, restore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from darkroom.pipelines.command_line.console import CONSOLE, open_workspace


def backup(target: Annotated[Path, typer.Argument(help="A new folder.")]) -> None:
    """Copy the campaign to a new folder while the server runs: its database, the journal, secrets and rules.

    Images are not included. Who can read the backup can log in as the administrator.

    `darkroom annotate backup /backups/$(date +%F)`
    """
    from darkroom.annotation.rounds.backup import back_up

    with open_workspace() as workspace:
        back_up(workspace.annotation, target, say=CONSOLE.print)
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        CONSOLE.print(f"wrote {target}: {size / 1e6:,.1f} MB", highlight=False, soft_wrap=True)


def restore(
    source: Annotated[Path, typer.Argument(help="A folder of `darkroom annotate backup`.")],
    postgres: Annotated[
        str | None, typer.Option(help="URL of an empty PostgreSQL database, with user and password.")
    ] = None,
) -> None:
    """Bring a backup back into a workspace without a campaign, of the same version of Darkroom or an earlier one.

    Then `darkroom annotate up`, and `doctor` for what people did after the backup.
    """
    from darkroom.annotation.rounds.backup import restore as bring_back

    with open_workspace() as workspace:
        with CONSOLE.status("restoring …"):
            bring_back(source, workspace.annotation, postgres=postgres)
        CONSOLE.print(f"restored {workspace.annotation}; next: `darkroom annotate up`", highlight=False, soft_wrap=True)
