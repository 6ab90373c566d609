"""The commands of `darkroom annotate` (wired in ``annotation/cli.py``): their terminal, and what they open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from darkroom.pipelines.command_line.console import CONSOLE, open_workspace

if TYPE_CHECKING:
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.journal import Journal
    from darkroom.annotation.rounds.tables import AnnotationStages
    from darkroom.pipelines.storage.workspace import Workspace


class OpenCampaign(NamedTuple):
    """A workspace with its campaign and journal."""

    workspace: Workspace
    campaign: Campaign
    journal: Journal

    def stages(self) -> AnnotationStages:
        from darkroom.annotation.label_studio.server import find_task_url
        from darkroom.annotation.rounds.tables import AnnotationStages

        return AnnotationStages(self.workspace, self.campaign, self.journal, find_task_url(self.workspace))


@contextmanager
def open_campaign() -> Iterator[OpenCampaign]:
    from darkroom.annotation.rounds.campaign import Campaign
    from darkroom.annotation.rounds.journal import Journal

    with open_workspace() as workspace, Journal(workspace.annotation) as journal:
        yield OpenCampaign(workspace, Campaign.load(workspace.annotation), journal)


def print_progress(journal: Journal) -> None:
    """How many records are accepted, rejected, and waiting by round, as of the last complete sync."""
    labels = [(f"waiting for {round}" if stage == "waiting" else stage, n) for stage, round, n in journal.progress()]
    counts: Counter[str] = Counter()
    for label, n_records in labels:
        counts[label] += n_records
    CONSOLE.print("  ".join(f"{label} {n:,}" for label, n in counts.items()), highlight=False)
