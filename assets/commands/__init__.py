"""The commands of ``darkroom``, a module per group, listed in ``assets/cli.py``; heavy imports are inside functions.

Here is what they share: the terminal, progress bars, and the one place that turns errors into messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from pipelines.storage.stage import Progress as OnProgress

CONSOLE = Console()


def print_line(line: str) -> None:
    """Prints a line without colours or line breaks, so that its paths can be copied."""
    CONSOLE.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    """A bar on ``CONSOLE``; call what it yields with (rows done, rows in all). The bar disappears at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=CONSOLE, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda n_done, n_rows: bar.update(task, completed=n_done, total=n_rows)


@contextmanager
def errors_as_messages(*others: type[Exception]) -> Iterator[None]:
    """Prints an error that a user can fix as one line and exits with status 1; other errors keep their traceback.

    ``others``: further errors of one command.
    """
    from annotation import AnnotationError
    from assets.launching.jobs import LaunchError
    from assets.runs.instance import MaterializationFailed
    from pipelines.generation.judge_calibration import JudgeUnknown
    from pipelines.generation.recipes import RecipeError
    from pipelines.models.policies import PolicyUnavailable
    from pipelines.models.prompts import PromptError
    from pipelines.publishing.explain import RowAmbiguous, RowUnknown
    from pipelines.selection.decontamination import DecontaminationError
    from pipelines.sources import SourceError
    from pipelines.storage.database import LedgerUnavailable
    from pipelines.storage.tables import TableMissing, TableStale
    from pipelines.verification.judges.calibration import CalibrationError
    from pipelines.verification.judges.labels import LabelsUnreadable
    from sandbox import SandboxUnavailable

    fixable: tuple[type[Exception], ...] = (
        AnnotationError,
        CalibrationError,
        DecontaminationError,
        JudgeUnknown,
        LaunchError,
        LabelsUnreadable,
        LedgerUnavailable,
        MaterializationFailed,
        PolicyUnavailable,
        PromptError,
        RecipeError,
        RowAmbiguous,
        RowUnknown,
        SandboxUnavailable,
        SourceError,
        TableMissing,
        TableStale,
        *others,
    )
    try:
        yield
    except fixable as error:
        message = Text.assemble(("error: ", "bold red"), str(error))
        Console(stderr=True).print(message, soft_wrap=True)
        raise typer.Exit(1) from error
