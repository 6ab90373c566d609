"""Trains the phases in order, each from the weights of the one before. A finished phase leaves weights and steps in its
folder below ``Staging.steps``; a restart skips it and resumes the interrupted phase from its last checkpoint."""

import gc
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.train.examples.conformance import ConformanceGate, examine, explanation, summary
from darkroom.train.examples.datasets import HeldOut, held_out, open_dataset, presented
from darkroom.train.examples.encoding import RowCache, RowReader
from darkroom.train.finetuning.settings import Phase, SftSettings, share_of_batch
from darkroom.train.models import loading
from darkroom.train.models.sharding import always_sees, note_on_launch
from darkroom.train.runs import TrainError
from darkroom.train.runs.checkpoints import DONE, RestoresCheckpoints, Staging
from darkroom.train.runs.held_out import METRICS, shares, spread
from darkroom.train.runs.history import read_steps
from darkroom.train.runs.options import split_options
from darkroom.train.runs.reporting import RunReporter, progress_lines
from darkroom.train.runs.trainer_callbacks import EvaluatesPeriodically, report_steps


def held_out_loss(trainer: Any, rows: Sequence[Any], reader: RowReader, *, size: int) -> dict[str, float]:
    """``eval_loss`` (negative log-likelihood) and ``eval_mean_token_accuracy``: means over all trained tokens of the
    rows, whatever their division into forward passes. Each process reads its share of ``rows``, ``size`` at a time."""
    accelerator = trainer.accelerator
    sums = torch.zeros(3, dtype=torch.float64, device=accelerator.device)
    for share in shares(len(rows), size, accelerator):
        batch = reader.read([rows[row] for row in share.rows])
        inputs = {name: value.to(accelerator.device) for name, value in batch.items()}
        with trainer.compute_loss_context_manager():
            output = trainer.model_wrapped(**inputs, use_cache=False, fused_lm_head=True)
        if share.counts:
            columns = (-output.log_probs, output.label_mask, output.is_top1)
            sums += torch.stack([column.sum().double() for column in columns])
    loss, n_tokens, n_right = accelerator.reduce(sums, reduction="sum").tolist()
    return {"eval_loss": loss / n_tokens, "eval_mean_token_accuracy": n_right / n_tokens}


class StepwiseSFTTrainer(RestoresCheckpoints, EvaluatesPeriodically, SFTTrainer):
    """TRL's trainer, whose loss of a step is the mean over all its trained tokens, whatever the size of its passes. TRL
    1.16 does so only for models with the loss argument ``num_items_in_batch``, which the Qwen-VL models lack: a row of
    five trained tokens would weigh as much as one of five hundred, depending on how a batch is divided."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        loading.score_only_trained_tokens()
        super().__init__(*args, **kwargs)
        self.model_accepts_loss_kwargs = True
        if self.accelerator.num_processes > 1:
            always_sees(self.model)


Plan = Sequence[tuple[Phase, tuple[Path, ...]]]
"""Phases with their dataset folders."""
_WEIGHTS = "weights"


@dataclass(frozen=True, slots=True)
class PreparedPhase:
    """A phase with its dataset folders and the indices of the rows to train on."""

    phase: Phase
    folders: tuple[Path, ...]
    rows: Sequence[int]
    held_out: Dataset | None = None
    """The rows that it is evaluated on."""


@dataclass(frozen=True, slots=True)
class SftRun:
    """A training in phases; ``reader`` was opened from ``model``, with which the first phase starts."""

    model: Path
    reader: RowReader
    settings: SftSettings
    staging: Staging
    report: RunReporter
    save_steps: int

    def check_rows(self, planned: Plan, reports: Path) -> list[PreparedPhase]:
        """Select the conforming rows of the phases. Raises ``TrainError`` for others, unless the settings drop them."""
        trained = tuple(dict.fromkeys(folder for _, folders in planned for folder in folders))
        prepared: list[PreparedPhase] = []
        for phase, folders in planned:
            rows = self._conforming(phase.name, HeldOut(folders, "train"), reports)
            prepared.append(PreparedPhase(phase, folders, rows, self._held_out(phase.name, folders, trained, reports)))
        return prepared

    def _conforming(self, name: str, part: HeldOut, reports: Path) -> Sequence[int]:
        max_tokens = self.settings.max_tokens or loading.context_length(self.model)
        gate = ConformanceGate(part.folders, self.model, self.reader, max_tokens, part.part)
        checked = examine(gate, reports, writes=self.staging.writes, progress=progress_lines(self.report, "checked"))
        self.report.line(f"{name}: {summary(checked)}")
        rows = checked.conforming()
        if checked.n_refused and (not self.settings.drop_nonconforming or not rows):
            raise TrainError(f"{explanation(checked)}\n--drop-nonconforming trains on the others, if there are any")
        return rows

    def _held_out(self, name: str, folders: Sequence[Path], trained: Sequence[Path], reports: Path) -> Dataset | None:
        settings = self.settings
        if not settings.eval_every:
            return None
        part = held_out(folders, settings.eval_dataset, trained=trained)
        conforming = self._conforming(f"{name}, held out", part, reports)
        chosen = [conforming[index] for index in spread(len(conforming), settings.eval_limit)]
        self.report.line(f"{name}: evaluated on {len(chosen):,} held-out rows every {settings.eval_every} steps")
        return open_dataset(*part.folders, part=part.part).select(chosen)

    def train(self, phases: Sequence[PreparedPhase]) -> list[dict[str, Any]]:
        """Train all phases, save the last one's checkpoint to ``staging.final``, return the steps, counted through."""
        steps: list[dict[str, Any]] = []
        model = self.model
        for number, prepared in enumerate(phases):
            folder = self.staging.steps / f"{number}-{prepared.phase.name}"
            if not (folder / DONE).is_file():
                last = number == len(phases) - 1
                into = self.staging.final if last else folder / _WEIGHTS
                self.report.line(_phase_line(prepared, number, len(phases), self.settings))
                phase_steps = self._train(prepared, model, folder, into)
                if last:
                    return [*steps, *_numbered(phase_steps, steps, prepared, len(phases))]
                _finish(folder, phase_steps, writes=self.staging.writes)
            phase_steps = json.loads((folder / DONE).read_text())
            steps += _numbered(phase_steps, steps, prepared, len(phases))
            model = folder / _WEIGHTS
        return steps

    def _train(self, prepared: PreparedPhase, model: Path, folder: Path, into: Path) -> list[dict[str, Any]]:
        processor = self.reader.processor
        own_template, processor.chat_template = processor.chat_template, self.reader.template
        trainer = self._trainer(prepared, model, folder)
        report_steps(trainer, self.report, "sft")
        if prepared.held_out is not None:
            size, _ = share_of_batch(self.settings)
            measure = partial(held_out_loss, trainer, prepared.held_out, self.reader, size=size)
            trainer.evaluate_periodically(self.settings, METRICS["sft"], measure=measure, report=self.report)
        if note := note_on_launch(trainer):
            self.report.line(note)
        trainer.train(resume_from_checkpoint=self.staging.last_step(folder))
        trainer.accelerator.wait_for_everyone()
        best = trainer.periodic and trainer.periodic.best_weights
        loading.save_checkpoint(trainer, processor, into, base=self.model, chat_template=own_template, best=best)
        processor.chat_template = own_template
        trainer.accelerator.wait_for_everyone()
        steps = read_steps(trainer.state.log_history, "sft")
        _free(trainer)
        return steps

    def _trainer(self, prepared: PreparedPhase, model: Path, folder: Path) -> Any:
        settings = self.settings
        arguments = _config(prepared.phase, settings, folder, self.save_steps)  # before the model: starts the processes
        own = split_options(settings.trainer, "sft")[1]
        loaded = loading.load_model(model, keeps_float32=not settings.lora and not settings.bf16_weights, **own)
        if settings.freeze_vision:
            loaded.model.visual.requires_grad_(False)  # the tower and its projector
        rows, cache = open_dataset(*prepared.folders).select(prepared.rows), RowCache(self.reader)
        return StepwiseSFTTrainer(
            loaded,
            args=arguments,
            data_collator=cache.collate,
            train_dataset=presented(rows, cache.present, decode=False),
            processing_class=self.reader.processor,
            peft_config=loading.lora_config(settings.lora, vision=not settings.freeze_vision),
        )


def _config(phase: Phase, settings: SftSettings, folder: Path, save_steps: int) -> Any:
    per_device, accumulation = share_of_batch(settings)
    arguments = {
        **loading.trainer_arguments(folder, seed=settings.seed, save_steps=save_steps),
        "num_train_epochs": phase.epochs,
        "max_steps": phase.max_steps,
        "per_device_train_batch_size": per_device,
        "gradient_accumulation_steps": accumulation,
        "learning_rate": phase.learning_rate,
        "warmup_steps": phase.warmup,  # below 1 it is a share of all steps
        "lr_scheduler_type": "cosine",
        "assistant_only_loss": True,
        "max_length": None,  # the default of 1024 would cut image tokens off
        "remove_unused_columns": False,
    }
    return SFTConfig(**{**arguments, **split_options(settings.trainer, "sft")[0]})


def _finish(folder: Path, steps: list[dict[str, Any]], *, writes: bool) -> None:
    if writes:
        write_whole(folder / DONE, json.dumps(steps))
        for checkpoint in (*folder.glob("checkpoint-*"), *folder.glob("best-*")):
            shutil.rmtree(checkpoint)
    PartialState().wait_for_everyone()


def _free(trainer: Any) -> None:
    trainer.accelerator.free_memory()
    trainer.model = trainer.model_wrapped = None
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _numbered(
    phase_steps: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]], prepared: PreparedPhase, n_phases: int
) -> list[dict[str, Any]]:
    phase = {"phase": prepared.phase.name} if n_phases > 1 else {}
    start = before[-1]["step"] if before else 0
    return [{**step, "step": step["step"] + start, **phase} for step in phase_steps]


def _phase_line(prepared: PreparedPhase, number: int, n_phases: int, settings: SftSettings) -> str:
    phase, (per_device, accumulation) = prepared.phase, share_of_batch(settings)
    names = ", ".join(folder.name for folder in prepared.folders)
    return (
        f"phase {number + 1} of {n_phases}, {phase.name}: {len(prepared.rows):,} rows of {names}; "
        f"learning rate {phase.learning_rate:g}, {settings.batch_size} rows per step "
        f"({per_device} at a time, {accumulation} times)"
    )
