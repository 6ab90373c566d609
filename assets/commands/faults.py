"""The terminal that commands write to, and how their faults are said there."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

CONSOLE = Console()


@contextmanager
def faults_as_messages() -> Iterator[None]:
    """What a user can mend is said in one paragraph and ends with status 1; anything else keeps its traceback."""
    from annotation.faults import AnnotationFault
    from assets.launching.job import LaunchFault
    from assets.materialize import MaterializationFailed
    from pipelines.database import LedgerUnavailable
    from pipelines.decontamination import DecontaminationFault
    from pipelines.explain import RowAmbiguous, RowUnknown
    from pipelines.judges.calibration import CalibrationFault
    from pipelines.judges.labels import LabelsUnreadable
    from pipelines.labelled_rows import JudgeUnknown
    from pipelines.policies import PolicyUnavailable
    from pipelines.prompts import PromptFault
    from pipelines.recipes import RecipeFault
    from pipelines.sources import SourceFault
    from pipelines.tables import TableMissing, TableStale
    from sandbox import SandboxUnavailable

    try:
        yield
    except (
        AnnotationFault,
        CalibrationFault,
        DecontaminationFault,
        JudgeUnknown,
        LaunchFault,
        LabelsUnreadable,
        LedgerUnavailable,
        MaterializationFailed,
        PolicyUnavailable,
        PromptFault,
        RecipeFault,
        RowAmbiguous,
        RowUnknown,
        SandboxUnavailable,
        SourceFault,
        TableMissing,
        TableStale,
    ) as fault:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(fault)))
        raise typer.Exit(1) from fault
