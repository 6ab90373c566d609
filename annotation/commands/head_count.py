"""Too few people for a campaign's rules, said by `up`, `sync`, `doctor` and `users remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotation import AnnotationError
from annotation.commands import CONSOLE

if TYPE_CHECKING:
    from annotation.label_studio.client import LabelStudioClient
    from annotation.rounds.campaign import Campaign


def print_shortages(campaign: Campaign, studio: LabelStudioClient) -> int:
    """A line for each role with too few people; returns their number."""
    from annotation.rounds.team import shortages

    found = shortages(campaign, studio.accounts())
    for short in found:
        CONSOLE.print(f"[bold red]too few:[/bold red] {short}", highlight=False, soft_wrap=True)
    return len(found)


def require_experts(campaign: Campaign, studio: LabelStudioClient) -> None:
    """Raises ``AnnotationError`` when several experts judge each record and there are fewer."""
    from annotation.rounds.team import shortages

    for short in shortages(campaign, studio.accounts()):
        if short.role == "expert" and campaign.experts_per_record > 1:
            raise AnnotationError(f"too few experts: {short}")
