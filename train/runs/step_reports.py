"""What a trainer reports of its steps, in the place of what it prints itself."""

from collections.abc import Mapping
from typing import Any

from transformers import PrinterCallback, TrainerCallback

from darkroom.train.runs import history
from darkroom.train.runs.reporting import RunReporter

LINES = 20
"""About so many steps of a training are printed."""


class StepReporter(TrainerCallback):
    """Reports every step of a trainer: ``step 3/12, epoch 0.50: loss 5.12``."""

    def __init__(self, report: RunReporter, columns: Mapping[str, str]) -> None:
        """``columns`` maps names of the trainer's log to what a person reads."""
        self._report, self._columns = report, columns

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Called by the trainer."""
        if logs and "loss" in logs:
            step, n_steps = state.global_step, state.max_steps
            values = ", ".join(f"{name} {logs[key]:.4g}" for key, name in self._columns.items() if key in logs)
            line = f"step {step}/{n_steps}, epoch {logs['epoch']:.2f}: {values}"
            is_printed = step in (1, n_steps) or step % max(1, n_steps // LINES) == 0
            self._report.step(step, n_steps, line=line, metrics=logs, is_printed=is_printed)


def report_steps(trainer: Any, report: RunReporter, program: str) -> None:
    """Reports the steps of ``trainer``, in the place of what it prints itself."""
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, history.COLUMNS[program]["told"]))
