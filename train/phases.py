"""Trains one phase after the other, each from the weights of the one before.

A phase that is done leaves its weights and its steps in its folder below ``Staging.steps``; a restart passes it over
and goes on in the one that was interrupted, from its last restart point.
"""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.conformance import Gate, examine, refusal, summary
from train.faults import TrainFault
from train.history import read_steps
from train.models import (
    context_length,
    device_arguments,
    freeze_vision,
    load_model,
    lora_config,
    save_checkpoint,
)
from train.reading import Reader, open_reader
from train.reporting import Report, StepReporter
from train.rows import open_dataset, presented
from train.sft_settings import Arguments, Planned, share_of_batch

if TYPE_CHECKING:
    from train.checkpoints import Staging

COLUMNS = {"loss": "loss", "mean_token_accuracy": "token accuracy", "learning_rate": "learning rate"}
_DONE, _WEIGHTS = "done.json", "weights"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A phase with the folders of its datasets, and which of their rows are trained on."""

    phase: Planned
    folders: tuple[Path, ...]
    rows: Sequence[int]


def open_model_reader(model: Path, arguments: Arguments) -> Reader:
    """How rows are read for ``model``."""
    return open_reader(
        model,
        layout=arguments.layout,
        min_pixels=arguments.min_pixels,
        max_pixels=arguments.max_pixels,
        train_observations=arguments.train_observations,
    )


def check_rows(
    planned: Sequence[tuple[Planned, tuple[Path, ...]]],
    model: Path,
    reader: Reader,
    arguments: Arguments,
    reports: Path,
    report: Report,
    *,
    writes: bool,
) -> list[Stretch]:
    """The phases with the rows that conform. Raises ``TrainFault`` when some do not and were not given up."""
    stretches: list[Stretch] = []
    for phase, folders in planned:
        gate = Gate(folders, model, reader, arguments.max_tokens or context_length(model))
        found = examine(gate, reports, writes=writes, progress=_progress(report))
        report.line(f"{phase.name}: {summary(found)}")
        rows = found.conforming()
        if found.n_refused and (not arguments.drop_nonconforming or not rows):
            raise TrainFault(f"{refusal(found)}\n--drop-nonconforming trains on the others, if there are any")
        stretches.append(Stretch(phase, folders, rows))
    return stretches


def train_phases(
    stretches: Sequence[Stretch],
    model: Path,
    reader: Reader,
    arguments: Arguments,
    staging: Staging,
    report: Report,
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
            report.line(_said(stretch, number, len(stretches), arguments))
            made = _train(stretch, model, reader, arguments, folder, into, staging, report, save_steps=save_steps)
            if last:
                return [*steps, *_numbered(made, steps, stretch, len(stretches))]
            _finish(folder, made, writes=staging.writes)
        made = json.loads((folder / _DONE).read_text())
        steps += _numbered(made, steps, stretch, len(stretches))
        model = folder / _WEIGHTS
    return steps


def _train(
    stretch: Stretch,
    model: Path,
    reader: Reader,
    arguments: Arguments,
    folder: Path,
    into: Path,
    staging: Staging,
    report: Report,
    *,
    save_steps: int,
) -> list[dict[str, Any]]:
    from transformers import PrinterCallback

    own_template = reader.processor.chat_template
    trainer = _trainer(stretch, model, reader, arguments, folder, save_steps)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, COLUMNS))
    trainer.train(resume_from_checkpoint=staging.last_step(folder))
    trainer.accelerator.wait_for_everyone()
    save_checkpoint(trainer, reader.processor, into, chat_template=own_template)
    reader.processor.chat_template = own_template
    trainer.accelerator.wait_for_everyone()
    made = read_steps(trainer.state.log_history, (*COLUMNS, "grad_norm"))
    _free(trainer)
    return made


def _trainer(stretch: Stretch, model: Path, reader: Reader, arguments: Arguments, folder: Path, save_steps: int) -> Any:
    from train.sft_trainer import StepwiseSFTTrainer

    reader.processor.chat_template = reader.template
    loaded = load_model(model)
    if arguments.freeze_vision:
        freeze_vision(loaded)
    rows = open_dataset(*stretch.folders)
    return StepwiseSFTTrainer(
        loaded,
        args=_config(stretch.phase, arguments, folder, save_steps),
        data_collator=reader.collate,
        train_dataset=presented(rows.select(stretch.rows), reader.present),
        processing_class=reader.processor,
        peft_config=lora_config(arguments.lora, vision=not arguments.freeze_vision),
    )


def _config(phase: Planned, arguments: Arguments, folder: Path, save_steps: int) -> Any:
    from trl.trainer.sft_config import SFTConfig

    per_device, accumulation = share_of_batch(arguments)
    return SFTConfig(
        output_dir=str(folder),
        num_train_epochs=phase.epochs,
        max_steps=phase.max_steps,
        per_device_train_batch_size=per_device,
        gradient_accumulation_steps=accumulation,
        learning_rate=phase.learning_rate,
        warmup_steps=phase.warmup,  # below 1 it is a share of all steps
        lr_scheduler_type="cosine",
        seed=arguments.seed,
        data_seed=arguments.seed,
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


def _finish(folder: Path, made: list[dict[str, Any]], *, writes: bool) -> None:
    """Marks a phase as done; its restart points are needed no more."""
    if writes:
        (folder / f".{_DONE}").write_text(json.dumps(made))
        (folder / f".{_DONE}").rename(folder / _DONE)
        for checkpoint in folder.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)
    _wait()


def _wait() -> None:
    from accelerate import PartialState

    PartialState().wait_for_everyone()


def _free(trainer: Any) -> None:
    """Gives the memory back before the next phase loads its model."""
    import torch

    trainer.accelerator.free_memory()
    trainer.model = trainer.model_wrapped = None
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _numbered(
    made: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]], stretch: Stretch, n_phases: int
) -> list[dict[str, Any]]:
    named = {"phase": stretch.phase.name} if n_phases > 1 else {}
    start = before[-1]["step"] if before else 0
    return [{**step, "step": step["step"] + start, **named} for step in made]


def _said(stretch: Stretch, number: int, n_phases: int, arguments: Arguments) -> str:
    phase, (per_device, accumulation) = stretch.phase, share_of_batch(arguments)
    names = ", ".join(folder.name for folder in stretch.folders)
    return (
        f"phase {number + 1} of {n_phases}, {phase.name}: {len(stretch.rows):,} rows of {names}; "
        f"learning rate {phase.learning_rate:g}, {arguments.batch_size} rows per step "
        f"({per_device} at a time, {accumulation} times)"
    )


def _progress(report: Report) -> Any:
    """A line for every tenth of many rows."""
    told = {"tenth": 0}

    def tell(done: int, of: int) -> None:
        if of >= 1000 and 10 * done // of > told["tenth"]:
            told["tenth"] = 10 * done // of
            report.line(f"checked {done:,} of {of:,} rows")

    return tell
