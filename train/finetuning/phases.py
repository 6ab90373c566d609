"""Trains the phases in order, each from the weights of the one before.

A finished phase leaves weights and steps in its folder below ``Staging.steps``; a restart skips it and resumes the
interrupted phase from its last checkpoint.
"""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trl.trainer.sft_trainer import SFTTrainer

from pipelines.storage.atomic_write import write_whole
from train.examples.conformance import ConformanceGate, examine, explanation, summary
from train.examples.datasets import open_dataset, presented
from train.examples.encoding import RowReader, open_reader
from train.finetuning.settings import PlannedPhase, SftSettings, share_of_batch
from train.models.loading import (
    context_length,
    device_arguments,
    freeze_vision,
    load_model,
    lora_config,
    save_checkpoint,
)
from train.runs import TrainError
from train.runs.checkpoints import RestoresCheckpoints
from train.runs.history import read_steps
from train.runs.job import RunReporter, StepReporter

if TYPE_CHECKING:
    from train.runs.checkpoints import Staging


class StepwiseSFTTrainer(RestoresCheckpoints, SFTTrainer):
    """The loss of a step is the mean over all its trained tokens, whatever the size of its forward passes.

    TRL 1.16 does so only for models that declare the loss argument ``num_items_in_batch``, which the Qwen-VL models do
    not: without it a row of five trained tokens weighs as much as one of five hundred, and the result depends on how a
    batch is divided.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.model_accepts_loss_kwargs = True


COLUMNS = {"loss": "loss", "mean_token_accuracy": "token accuracy", "learning_rate": "learning rate"}
_DONE, _WEIGHTS = "done.json", "weights"


@dataclass(frozen=True, slots=True)
class PreparedPhase:
    """A phase with its dataset folders and the indices of the rows to train on."""

    phase: PlannedPhase
    folders: tuple[Path, ...]
    rows: Sequence[int]


def open_model_reader(model: Path, settings: SftSettings) -> RowReader:
    """The reader of rows for ``model``."""
    return open_reader(
        model,
        layout=settings.layout,
        min_pixels=settings.min_pixels,
        max_pixels=settings.max_pixels,
        train_observations=settings.train_observations,
    )


def check_rows(
    planned: Sequence[tuple[PlannedPhase, tuple[Path, ...]]],
    model: Path,
    reader: RowReader,
    settings: SftSettings,
    reports: Path,
    report: RunReporter,
    *,
    writes: bool,
) -> list[PreparedPhase]:
    """The phases with their conforming rows. Raises ``TrainError`` for others, unless the settings drop them."""
    stretches: list[PreparedPhase] = []
    for phase, folders in planned:
        gate = ConformanceGate(folders, model, reader, settings.max_tokens or context_length(model))
        conformance = examine(gate, reports, writes=writes, progress=_progress(report))
        report.line(f"{phase.name}: {summary(conformance)}")
        rows = conformance.conforming()
        if conformance.n_refused and (not settings.drop_nonconforming or not rows):
            raise TrainError(f"{explanation(conformance)}\n--drop-nonconforming trains on the others, if there are any")
        stretches.append(PreparedPhase(phase, folders, rows))
    return stretches


def train_phases(
    stretches: Sequence[PreparedPhase],
    model: Path,
    reader: RowReader,
    settings: SftSettings,
    staging: Staging,
    report: RunReporter,
    *,
    save_steps: int,
) -> list[dict[str, Any]]:
    """Trains all phases, saves the last one's checkpoint to ``staging.final``, returns all steps, counted through."""
    steps: list[dict[str, Any]] = []
    for number, stretch in enumerate(stretches):
        folder = staging.steps / f"{number}-{stretch.phase.name}"
        if not (folder / _DONE).is_file():
            last = number == len(stretches) - 1
            into = staging.final if last else folder / _WEIGHTS
            report.line(_phase_line(stretch, number, len(stretches), settings))
            phase_steps = _train(stretch, model, reader, settings, folder, into, staging, report, save_steps=save_steps)
            if last:
                return [*steps, *_numbered(phase_steps, steps, stretch, len(stretches))]
            _finish(folder, phase_steps, writes=staging.writes)
        phase_steps = json.loads((folder / _DONE).read_text())
        steps += _numbered(phase_steps, steps, stretch, len(stretches))
        model = folder / _WEIGHTS
    return steps


def _train(
    stretch: PreparedPhase,
    model: Path,
    reader: RowReader,
    settings: SftSettings,
    folder: Path,
    into: Path,
    staging: Staging,
    report: RunReporter,
    *,
    save_steps: int,
) -> list[dict[str, Any]]:
    from transformers import PrinterCallback

    own_template = reader.processor.chat_template
    trainer = _trainer(stretch, model, reader, settings, folder, save_steps)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, COLUMNS))
    trainer.train(resume_from_checkpoint=staging.last_step(folder))
    trainer.accelerator.wait_for_everyone()
    save_checkpoint(trainer, reader.processor, into, chat_template=own_template)
    reader.processor.chat_template = own_template
    trainer.accelerator.wait_for_everyone()
    steps = read_steps(trainer.state.log_history, (*COLUMNS, "grad_norm"))
    _free(trainer)
    return steps


def _trainer(
    stretch: PreparedPhase, model: Path, reader: RowReader, settings: SftSettings, folder: Path, save_steps: int
) -> Any:

    reader.processor.chat_template = reader.template
    loaded = load_model(model)
    if settings.freeze_vision:
        freeze_vision(loaded)
    rows = open_dataset(*stretch.folders)
    return StepwiseSFTTrainer(
        loaded,
        args=_config(stretch.phase, settings, folder, save_steps),
        data_collator=reader.collate,
        train_dataset=presented(rows.select(stretch.rows), reader.present),
        processing_class=reader.processor,
        peft_config=lora_config(settings.lora, vision=not settings.freeze_vision),
    )


def _config(phase: PlannedPhase, settings: SftSettings, folder: Path, save_steps: int) -> Any:
    from trl.trainer.sft_config import SFTConfig

    per_device, accumulation = share_of_batch(settings)
    return SFTConfig(
        output_dir=str(folder),
        num_train_epochs=phase.epochs,
        max_steps=phase.max_steps,
        per_device_train_batch_size=per_device,
        gradient_accumulation_steps=accumulation,
        learning_rate=phase.learning_rate,
        warmup_steps=phase.warmup,  # below 1 it is a share of all steps
        lr_scheduler_type="cosine",
        seed=settings.seed,
        data_seed=settings.seed,
        assistant_only_loss=True,
        max_length=None,  # the default of 1024 would cut image tokens off
        remove_unused_columns=False,
        logging_steps=1,
        save_strategy="steps" if save_steps else "no",
        save_steps=save_steps or 500,
        save_total_limit=2,
        report_to="none",
        disable_tqdm=True,
        **device_arguments(),
    )


def _finish(folder: Path, steps: list[dict[str, Any]], *, writes: bool) -> None:
    """Marks a phase as finished and deletes its checkpoints."""
    if writes:
        write_whole(folder / _DONE, json.dumps(steps))
        for checkpoint in folder.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
    _wait()


def _wait() -> None:
    from accelerate import PartialState

    PartialState().wait_for_everyone()


def _free(trainer: Any) -> None:
    """Frees the memory before the next phase loads its model."""
    import torch

    trainer.accelerator.free_memory()
    trainer.model = trainer.model_wrapped = None
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _numbered(
    phase_steps: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]], stretch: PreparedPhase, n_phases: int
) -> list[dict[str, Any]]:
    phase = {"phase": stretch.phase.name} if n_phases > 1 else {}
    start = before[-1]["step"] if before else 0
    return [{**step, "step": step["step"] + start, **phase} for step in phase_steps]


def _phase_line(stretch: PreparedPhase, number: int, n_phases: int, settings: SftSettings) -> str:
    phase, (per_device, accumulation) = stretch.phase, share_of_batch(settings)
    names = ", ".join(folder.name for folder in stretch.folders)
    return (
        f"phase {number + 1} of {n_phases}, {phase.name}: {len(stretch.rows):,} rows of {names}; "
        f"learning rate {phase.learning_rate:g}, {settings.batch_size} rows per step "
        f"({per_device} at a time, {accumulation} times)"
    )


def _progress(report: RunReporter) -> Any:
    """A line for every tenth of many rows."""
    reported = {"tenth": 0}

    def tell(n_checked: int, n_rows: int) -> None:
        if n_rows >= 1000 and 10 * n_checked // n_rows > reported["tenth"]:
            reported["tenth"] = 10 * n_checked // n_rows
            report.line(f"checked {n_checked:,} of {n_rows:,} rows")

    return tell
