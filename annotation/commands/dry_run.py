"""What `sync --dry-run` and `users add --dry-run` print: what a change would affect, as of the last sync."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from darkroom.annotation.commands import OpenCampaign
from darkroom.pipelines.command_line.console import CONSOLE

if TYPE_CHECKING:
    from darkroom.annotation.label_studio.protocol import Person
    from darkroom.annotation.rounds.preview import SyncPreview
    from darkroom.pipelines.storage.workspace import Workspace


def print_sync_preview(opened: OpenCampaign) -> None:
    """Open tasks whose terms differ from today's rules, and the tasks that a sync would hand out."""
    _print([*_preview(opened).sentences(), "nothing was pulled or changed; images as of the last sync"])


def print_role_preview(workspace: Workspace, people: Iterable[Person], emails: Sequence[str], role: str) -> None:
    """What another role of these accounts would change."""
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.journal import Journal
    from darkroom.annotation.rounds.preview import preview_role

    with Journal(workspace.annotation) as journal:
        open_tasks = _preview(OpenCampaign(workspace, Campaign.load(workspace.annotation), journal)).open_by_round
    team = list(people)
    for email in emails:
        _print(preview_role(email.strip().lower(), role, team, open_tasks))


def _preview(opened: OpenCampaign) -> SyncPreview:
    from darkroom.annotation.rounds.image_pool import POOL
    from darkroom.annotation.rounds.preview import preview_sync
    from darkroom.pipelines.records import PoolImage

    workspace, campaign, journal = opened
    pool = workspace.tables.read(POOL, PoolImage) if workspace.tables.exists(POOL) else []
    return preview_sync(journal, campaign, pool)


def _print(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        CONSOLE.print(sentence, highlight=False, soft_wrap=True)
