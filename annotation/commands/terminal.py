"""What the annotation commands share: the terminal, and a workspace whose faults are messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from annotation.stages import AnnotationStages
    from pipelines.workspace import Workspace

CONSOLE = Console()


@contextmanager
def open_workspace() -> Iterator[Workspace]:
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


def print_places(stages: AnnotationStages) -> None:
    places = Counter(
        f"waiting for {one.state.round}" if one.state.stage == "waiting" else one.state.stage
        for one in stages.read().kept
    )
    CONSOLE.print("  ".join(f"{place} {n:,}" for place, n in places.items()), highlight=False)
