"""Reports of a training program: to the terminal, to Dagster (Pipes) where ``DAGSTER_PIPES_CONTEXT`` is set, and to
trackers.

Dagster gets every step with all numbers of the trainer's log, from the first process:
{"kind": "step", "step": 3, "n_steps": 12, "said": "step 3/12, …", "metrics": {"loss": 5.12, …}}.
Nothing heavy is imported here, so that a program can report before it loads a model. Trackers are those that
transformers knows; they are no part of a checkpoint's inputs.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import is_first_process

STEP = "step"
"""The kind of a step's message."""
_TELL_SECONDS = 10.0


class RunReporter:
    """Reporter of lines, steps and results to the terminal and to Dagster."""

    def __init__(self, pipes: Any = None) -> None:
        self._pipes = pipes

    def line(self, text: str) -> None:
        if is_first_process():
            typer.echo(text)
        if self._pipes is not None:
            self._pipes.log.info(text)

    def step(self, step: int, n_steps: int, *, line: str, metrics: Mapping[str, Any], is_printed: bool = True) -> None:
        """Report one step: the finite ``metrics`` to Dagster, ``line`` to the terminal if ``is_printed``."""
        if is_printed and is_first_process():
            typer.echo(line)
        if self._pipes is not None:
            finite = {name: value for name, value in metrics.items() if is_number(value)}
            message = {"kind": STEP, "step": step, "n_steps": n_steps, "said": line, "metrics": finite}
            self._pipes.report_custom_message(message)

    def materialized(self, metadata: Mapping[str, Any], *, data_version: str | None = None) -> None:
        """Report the result: metadata and data version of the asset that Dagster is materialising."""
        if self._pipes is not None and self._pipes.is_asset_step:
            self._pipes.report_asset_materialization(metadata=dict(metadata), data_version=data_version)


def progress_lines(report: RunReporter, what: str) -> Callable[[int, int], None]:
    """Report a line every ten seconds and at the end: ``rollouts: 24 of 100 rows (24%), 3.1 a second, …``."""
    from darkroom.pipelines.storage.stage_runs import Pace, StageProgress  # heavy

    pace, last = Pace(), [time.monotonic()]

    def tell(n_done: int, n_rows: int) -> None:
        if n_done == n_rows or time.monotonic() - last[0] >= _TELL_SECONDS:
            last[0] = time.monotonic()
            report.line(f"{what}: {pace.words(StageProgress(n_done, n_rows))}")

    return tell


@contextmanager
def reporting() -> Iterator[RunReporter]:
    """Open a reporter to the terminal, and to Dagster where Dagster started this process."""
    if "DAGSTER_PIPES_CONTEXT" not in os.environ or not is_first_process():
        yield RunReporter()
        return
    from dagster_pipes import open_dagster_pipes

    with open_dagster_pipes() as pipes:
        yield RunReporter(pipes)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


VARIABLE = "DARKROOM_REPORT_TO"
TRACKERS = ("trackio", "wandb", "tensorboard", "mlflow", "swanlab")
"""Names of their packages."""
_WORDS = (
    f"Trackers that get every step's figures, separated by commas: {', '.join(TRACKERS)}. Each has settings of its own "
    "in the environment (WANDB_PROJECT, …)."
)
ReportTo = Annotated[str, typer.Option("--report-to", envvar=VARIABLE, help=_WORDS)]


def choose_trackers(names: str, output: Path) -> None:
    """Choose the trackers of this process's training. Raises ``TrainError`` as ``trackers`` does."""
    os.environ[VARIABLE] = names
    if "tensorboard" in trackers():
        # transformers' own default is a folder below the one where this is run
        os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(output.parent / "tensorboard" / output.name))


def trackers() -> list[str]:
    """Read the trackers of this training. Raises ``TrainError`` for one that is unknown or not installed."""
    names = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip() not in ("", "none")]
    for name in names:
        if name not in TRACKERS:
            raise TrainError(f"--report-to {name}: there are {', '.join(TRACKERS)}")
        if find_spec(name) is None:
            raise TrainError(f"--report-to {name} needs its package: pip install {name}")
    return names
