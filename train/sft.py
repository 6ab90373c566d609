"""Supervised fine-tuning on a shipped dataset: a program of its own, for one process or ``accelerate launch -m``.

    python -m train.sft --dataset data/exports/sft --model data/models/tiny --output data/checkpoints/sft

The output folder is the checkpoint (LoRA weights merged in) with ``training.json`` (loss of every step, inputs by
digest, versions) and ``loss.png``. It appears whole; a second run with the same inputs has nothing to do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from train.conversations import Layout
from train.program import guarded, recipe_values

if TYPE_CHECKING:
    from train.checkpoints import Staging
    from train.job import Job
    from train.reading import Reader
    from train.reporting import Report

COLUMNS = {"loss": "loss", "mean_token_accuracy": "token accuracy", "learning_rate": "learning rate"}


@dataclass(frozen=True, slots=True)
class Arguments:
    """What determines a checkpoint besides its dataset and its model. The defaults are those of Thyme's first phase."""

    layout: Layout = "turns"
    epochs: float = 3.0
    max_steps: int = -1
    batch_size: int = 4
    accumulation: int = 1
    learning_rate: float = 1e-5
    warmup: float = 0.05
    lora: int = 0
    max_pixels: int | None = None
    train_observations: bool = False
    seed: int = 0


def finetune(
    dataset: Path, model: Path, output: Path, arguments: Arguments, *, save_steps: int = 0, force: bool = False
) -> dict[str, Any]:
    """Trains and writes ``output``; returns its history. Raises ``TrainFault`` for inputs that cannot be trained on."""
    from train.job import Job, run_job
    from train.models import require_model
    from train.rows import open_dataset

    require_model(model)
    rows = open_dataset(dataset)
    job = Job("sft", dataset, model, output, asdict(arguments), column="loss")
    return run_job(job, partial(_train, job, rows, arguments, save_steps), force=force)


def _train(
    job: Job, rows: Any, arguments: Arguments, save_steps: int, staging: Staging, report: Report
) -> list[dict[str, Any]]:
    from train.history import read_steps
    from train.models import save_checkpoint
    from train.reading import open_reader

    reader = open_reader(
        job.model,
        layout=arguments.layout,
        max_pixels=arguments.max_pixels,
        train_observations=arguments.train_observations,
    )
    own_template = reader.processor.chat_template
    trainer = _trainer(rows, job.model, reader, arguments, staging.steps, save_steps)
    _check(job.dataset, rows, reader, trainer, report)
    _report_to(trainer, report)
    trainer.accelerator.wait_for_everyone()  # the first process may still have been clearing the folder
    trainer.train(resume_from_checkpoint=staging.last_step())
    save_checkpoint(trainer, reader.processor, staging.final, chat_template=own_template)
    trainer.accelerator.wait_for_everyone()
    return read_steps(trainer.state.log_history, (*COLUMNS, "grad_norm"))


def _trainer(rows: Any, model: Path, reader: Reader, arguments: Arguments, steps: Path, save_steps: int) -> Any:
    from trl.trainer.sft_trainer import SFTTrainer

    from train.models import load_model, lora_config
    from train.rows import presented

    reader.processor.chat_template = reader.template
    return SFTTrainer(
        load_model(model),
        args=_config(arguments, steps, save_steps),
        data_collator=reader.collate,
        train_dataset=presented(rows, reader.present),
        processing_class=reader.processor,
        peft_config=lora_config(arguments.lora),
    )


def _config(arguments: Arguments, steps: Path, save_steps: int) -> Any:
    from trl.trainer.sft_config import SFTConfig

    from train.models import device_arguments

    return SFTConfig(
        output_dir=str(steps),
        num_train_epochs=arguments.epochs,
        max_steps=arguments.max_steps,
        per_device_train_batch_size=arguments.batch_size,
        gradient_accumulation_steps=arguments.accumulation,
        learning_rate=arguments.learning_rate,
        warmup_steps=arguments.warmup,  # below 1 it is a share of all steps
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


def _check(dataset: Path, rows: Any, reader: Reader, trainer: Any, report: Report) -> None:
    from train.conformance import check_dataset
    from train.rows import rows_without_pixels

    longest = trainer.model.config.get_text_config().max_position_embeddings
    outlines = rows_without_pixels(dataset)
    found = check_dataset(rows, outlines, reader=reader, max_tokens=longest)
    report.line(
        f"{found.n_rows} rows conform; of {found.n_sampled} tokenized ones the longest has {found.longest} tokens, "
        f"{found.n_trained / found.n_tokens:.0%} of all tokens are trained"
    )


def _report_to(trainer: Any, report: Report) -> None:
    from transformers import PrinterCallback

    from train.reporting import StepReporter

    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, COLUMNS))


_DEFAULT = Arguments()


def main(
    dataset: Annotated[Path, typer.Option(help="Folder of a shipped dataset (parquet with embedded images).")],
    model: Annotated[Path, typer.Option(help="Folder of the model to start from.")],
    output: Annotated[Path, typer.Option(help="Folder of the checkpoint; replaced whole when training is done.")],
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with values for any of these flags, as in `learning_rate: 1e-5`; the command line wins.",
            callback=recipe_values,
            is_eager=True,
        ),
    ] = None,
    layout: Annotated[
        Layout,
        typer.Option(help="turns: observations as user turns, as GRPO has them. inline: inside one answer, as Thyme."),
    ] = _DEFAULT.layout,
    epochs: Annotated[float, typer.Option(min=0.0, help="Passes over the dataset.")] = _DEFAULT.epochs,
    max_steps: Annotated[int, typer.Option(help="Stop after so many steps; -1: after the epochs.")] = -1,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per step and process.")] = _DEFAULT.batch_size,
    accumulation: Annotated[int, typer.Option(min=1, help="Batches per step: batch size without memory.")] = 1,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Peak of the schedule.")] = _DEFAULT.learning_rate,
    warmup: Annotated[float, typer.Option(min=0.0, max=0.99, help="Share of the steps that warm up.")] = 0.05,
    lora: Annotated[int, typer.Option(min=0, help="Rank of LoRA; 0 trains all weights. Merged when saved.")] = 0,
    max_pixels: Annotated[
        int | None, typer.Option(min=784, help="Scale images down to so many pixels; default: the model's own limit.")
    ] = None,
    train_observations: Annotated[
        bool,
        typer.Option(
            "--train-observations",
            help="An ablation, never for use: every token after the question is trained, the sandbox's output as well.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the order of rows.")] = 0,
    save_steps: Annotated[
        int, typer.Option(min=0, help="Keep a restart point every so many steps; a restart goes on from it. 0: none.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Train even if the output is complete.")] = False,
) -> None:
    """Fine-tune a vision-language model on trajectories.

    The loss is on the model's own words, as each row's loss policy says.
    What the sandbox showed is never trained.

    Before the first step the rows are checked against the model's tokenizer.
    A row that does not conform stops the program, by its id. To see which
    tokens of a row are trained: python -m train.masks DATASET --model MODEL

    A toy run, in seconds and without a GPU:
    python -m train.tiny TINY --dataset DATASET
    python -m train.sft --dataset DATASET --model TINY --output OUT
    --epochs 4 --batch-size 1 --learning-rate 1e-2

    Several GPUs: accelerate launch -m train.sft --dataset ...
    """
    arguments = Arguments(
        layout=layout,
        epochs=epochs,
        max_steps=max_steps,
        batch_size=batch_size,
        accumulation=accumulation,
        learning_rate=learning_rate,
        warmup=warmup,
        lora=lora,
        max_pixels=max_pixels,
        train_observations=train_observations,
        seed=seed,
    )
    with guarded():
        finetune(dataset, model, output, arguments, save_steps=save_steps, force=force)


if __name__ == "__main__":
    typer.run(main)
