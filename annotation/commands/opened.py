"""The open campaign of a command, and what several commands print about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from darkroom.pipelines.command_line.console import CONSOLE, open_workspace, print_plain

if TYPE_CHECKING:
    from darkroom.annotation.label_studio.client import LabelStudioClient
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.journal import Journal
    from darkroom.annotation.rounds.sync import SyncPreview
    from darkroom.pipelines.storage.workspace import Workspace


class OpenCampaign(NamedTuple):
    """A workspace with its campaign and journal."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal


@contextmanager
def open_campaign() -> Iterator[OpenCampaign]:
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.journal import Journal

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        yield OpenCampaign(workspace, Campaign.load(workspace.annotation), journal)


def print_progress(journal: Journal) -> None:
    """Print how many records are accepted, rejected, and waiting by round, as of the last complete sync."""
    counts: Counter[str] = Counter()
    for stage, round, n_records in journal.progress():
        counts[f"waiting for {round}" if stage == "waiting" else stage] += n_records
    CONSOLE.print("  ".join(f"{label} {n:,}" for label, n in counts.items()), highlight=False)


def print_shortages(campaign: Campaign, studio: LabelStudioClient) -> None:
    from darkroom.annotation.rounds.campaign import shortages

    for short in shortages(campaign, studio.accounts()).values():
        print_plain(f"[bold red]too few:[/bold red] {short}")


def preview_of(opened: OpenCampaign) -> SyncPreview:
    """The next sync, with the images of the last one."""
    from darkroom.annotation.rounds.image_pool import POOL
    from darkroom.annotation.rounds.sync import preview_sync
    from darkroom.pipelines.records import PoolImage

    workspace, campaign, journal = opened
    pool = workspace.tables.read(POOL, PoolImage) if workspace.tables.exists(POOL) else []
    return preview_sync(journal, campaign, pool)
