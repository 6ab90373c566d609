"""Callbacks of trainers: reports of steps, evaluations on held-out rows, early stop, and the best evaluation's weights,
in ``best-<step>`` beside the checkpoints, as ``save_model`` writes them. Those that a restart point names stay until
the next restart point is complete."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, TrainerCallback

from darkroom.train.runs import TrainError, history
from darkroom.train.runs.held_out import Evaluations, HeldOutSettings, Metric
from darkroom.train.runs.reporting import RunReporter

LINES = 20
"""About so many steps of a training are printed."""


class StepReporter(TrainerCallback):
    """Reporter of every step of a trainer: ``step 3/12, epoch 0.50: loss 5.12``."""

    def __init__(self, report: RunReporter, columns: Mapping[str, str]) -> None:
        """``columns`` maps names of the trainer's log to labels."""
        self._report, self._columns = report, columns

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called by the trainer, which would train one more step after the last. Raises ``TrainError`` past it."""
        if state.global_step > state.max_steps:
            found = f"{args.output_dir} has a restart point after step {state.global_step}, and the training is to have"
            raise TrainError(f"{found} {state.max_steps} steps: set as many at least, or begin anew with --restart")
        if state.global_step == state.max_steps:
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs and "loss" in logs:
            step, n_steps = state.global_step, state.max_steps
            values = ", ".join(f"{name} {logs[key]:.4g}" for key, name in self._columns.items() if key in logs)
            line = f"step {step}/{n_steps}, epoch {logs['epoch']:.2f}: {values}"
            is_printed = step in (1, n_steps) or step % max(1, n_steps // LINES) == 0
            self._report.step(step, n_steps, line=line, metrics=logs, is_printed=is_printed)


def report_steps(trainer: Any, report: RunReporter, program: str) -> None:
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, history.COLUMNS[program]["told"]))


Measure = Callable[[], Mapping[str, float]]
"""The values of one evaluation by column of the log, the same in every process."""
_PREFIX = "best-"


class PeriodicEvaluation(TrainerCallback):
    """The evaluations of one training."""

    def __init__(
        self, trainer: Any, settings: HeldOutSettings, metric: Metric, *, measure: Measure, report: RunReporter
    ) -> None:
        self._trainer, self._settings, self._metric = trainer, settings, metric
        self._measure, self._report = measure, report

    @property
    def evaluations(self) -> Evaluations:
        """All so far, also those before a restart."""
        return Evaluations.of_log(self._trainer.state.log_history, self._metric)

    @property
    def best_weights(self) -> Path | None:
        """The folder of the best weights; None where the last step's are to be saved."""
        best = self.evaluations.best
        return self._folder(best.step) if best is not None and self._settings.keep_best else None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called by the trainer: a restart point of an interrupted evaluation has none for its step. Raises
        ``TrainError`` where the best weights so far are to be saved and were not kept."""
        if (best := self.best_weights) is not None and not best.is_dir():
            raise TrainError(f"the weights of {best.name} were not kept: leave out --keep-best, or use --restart")
        if self._settings.is_due(state.global_step, state.max_steps) and not self.evaluations.has(state.global_step):
            self.run()
        if self._settings.ends(self.evaluations):
            control.should_training_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._settings.is_due(state.global_step, state.max_steps):
            control.should_evaluate = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called by the trainer, when a restart point is complete: no older one is resumed from."""
        self._remove_others()

    def run(self) -> dict[str, float]:
        """Evaluate; training goes on as if it had not."""
        trainer, state = self._trainer, self._trainer.state
        was_training = trainer.model.training
        trainer.model.eval()
        try:
            gpus = [torch.cuda.current_device()] if torch.cuda.is_available() else []
            with torch.random.fork_rng(gpus), torch.no_grad():
                values = dict(self._measure())
            trainer.log(dict(values))
        finally:
            trainer.model.train(was_training)
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, state, trainer.control, values)
        self._report_values(values)
        best = self.evaluations.best
        if self._settings.keep_best and best is not None and best.step == state.global_step:
            self._keep(self._folder(best.step))
        if self._settings.ends(self.evaluations):
            trainer.control.should_training_stop = True
            self._report.line(f"stopped: {self._settings.early_stop} evaluations in sequence are no better")
        return values

    def _report_values(self, values: Mapping[str, float]) -> None:
        state, best = self._trainer.state, self.evaluations.best
        value = f"{self._metric.words} {values[self._metric.name]:.4g}"
        so_far = f" (best: {best.value:.4g} at step {best.step})" if best is not None else ""
        line = f"step {state.global_step}/{state.max_steps}: {value}{so_far}"
        self._report.step(state.global_step, state.max_steps, line=line, metrics=values)

    def _folder(self, step: int) -> Path:
        return Path(self._trainer.args.output_dir) / f"{_PREFIX}{step}"

    def _keep(self, folder: Path) -> None:
        trainer, part = self._trainer, folder.with_name(f".{folder.name}")
        if trainer.args.should_save:
            shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
        trainer.accelerator.wait_for_everyone()
        trainer.save_model(str(part), _internal_call=True)
        if trainer.args.should_save:
            (part / "training_args.bin").unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        trainer.accelerator.wait_for_everyone()
        if trainer.args.save_strategy == "no":
            self._remove_others()

    def _remove_others(self) -> None:
        if self._trainer.args.should_save:
            for folder in Path(self._trainer.args.output_dir).glob(f"{_PREFIX}*"):
                if folder != self.best_weights:
                    shutil.rmtree(folder)


class EvaluatesPeriodically:
    """A trainer, mixed into one of TRL's before it, that evaluates as ``evaluate_periodically`` says."""

    periodic: PeriodicEvaluation | None = None

    def evaluate_periodically(
        self, settings: HeldOutSettings, metric: Metric, *, measure: Measure, report: RunReporter
    ) -> None:
        """Set evaluations up, before ``train``."""
        trainer: Any = self
        self.periodic = PeriodicEvaluation(trainer, settings, metric, measure=measure, report=report)
        trainer.add_callback(self.periodic)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        assert self.periodic is not None
        return self.periodic.run()

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        trainer: Any = self
        if not trainer.control.should_training_stop:  # a training that resumes after its early stop
            super()._run_epoch(*args, **kwargs)  # type: ignore[misc]
