"""Too few people for a campaign's rules, said by `up`, `sync`, `doctor` and `users remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from darkroom.pipelines.command_line.console import CONSOLE

if TYPE_CHECKING:
    from darkroom.annotation.label_studio.client import LabelStudioClient
    from darkroom.annotation.rounds.campaign import Campaign


def print_shortages(campaign: Campaign, studio: LabelStudioClient) -> None:
    """A line for each role with too few people."""
    from darkroom.annotation.rounds.campaign import shortages

    for short in shortages(campaign, studio.accounts()):
        CONSOLE.print(f"[bold red]too few:[/bold red] {short}", highlight=False, soft_wrap=True)
