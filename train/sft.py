"""Supervised fine-tuning on shipped datasets: a program of its own, for one process or ``accelerate launch -m``.

    python -m train.sft --dataset data/datasets/sft --model data/models/qwen --output data/checkpoints/sft \\
        --recipe thyme

The output folder is the checkpoint (LoRA weights merged in) with ``training.json`` (phases, loss of every step, inputs
by digest, versions) and ``loss.png``. It appears whole; a second run with the same inputs has nothing to do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from train.conversations import Layout
from train.faults import TrainFault
from train.program import guarded, recipe_values
from train.recipes import recipe_names, recipe_path
from train.sft_settings import Arguments, Phase, Planned, folders_of, read_phases, share_of_batch

if TYPE_CHECKING:
    from train.checkpoints import Staging
    from train.job import Job
    from train.reporting import Report

Plan = Sequence[tuple[Planned, tuple[Path, ...]]]
"""Phases with the folders that they train on."""


def finetune(
    datasets: Path | Sequence[Path],
    model: Path,
    output: Path,
    arguments: Arguments,
    *,
    save_steps: int = 0,
    force: bool = False,
) -> dict[str, Any]:
    """Trains and writes ``output``; returns its history. Raises ``TrainFault`` for inputs that cannot be trained on.

    ``datasets`` are folders of one dataset or of several, from which the phases take theirs.
    """
    from train.job import Job, run_job
    from train.models import require_model
    from train.rows import count_rows, open_dataset

    given = [datasets] if isinstance(datasets, Path) else list(datasets)
    require_model(model)
    share_of_batch(arguments)
    planned = [
        (phase, tuple(folders_of(phase, given, skip_missing=arguments.skip_missing))) for phase in arguments.planned
    ]
    for _, folders in planned:
        if not count_rows(*folders):
            open_dataset(*folders)  # says why there is none
    read = tuple(dict.fromkeys(folder for _, folders in planned for folder in folders))
    common = Path(os.path.commonpath(read)) if len(read) > 1 else read[0]
    job = Job("sft", common, model, output, arguments.record, column="loss", folders=read)
    return run_job(job, partial(_train, job, planned, arguments, save_steps), force=force)


def _train(
    job: Job, planned: Plan, arguments: Arguments, save_steps: int, staging: Staging, report: Report
) -> list[dict[str, Any]]:
    from train.phases import check_rows, open_model_reader, train_phases

    reader = open_model_reader(job.model, arguments)
    reports = job.output.parent / ".conformance"
    stretches = check_rows(planned, job.model, reader, arguments, reports, report, writes=staging.writes)
    return train_phases(stretches, job.model, reader, arguments, staging, report, save_steps=save_steps)


def _recipe(context: typer.Context, name: str) -> str:
    """The callback of ``--recipe``: what the command line and ``--config`` leave out is as the recipe has it."""
    if name:
        given = dict(context.default_map or {})
        try:
            recipe_values(context, recipe_path(name))
        except TrainFault as fault:
            raise typer.BadParameter(str(fault)) from fault
        context.default_map = {**(context.default_map or {}), **given}
    return name


def _over_phases(context: typer.Context) -> dict[str, Any]:
    """What the command line says of a phase's schedule: it holds for every phase that stands in a file."""
    names = ("phases", "learning_rate", "epochs", "max_steps", "warmup")
    source = context.get_parameter_source
    said = {name: context.params[name] for name in names if (found := source(name)) and found.name == "COMMANDLINE"}
    return {} if "phases" in said else said


_DEFAULT = Arguments()


def main(
    context: typer.Context,
    dataset: Annotated[
        list[Path],
        typer.Option(help="Folder of a shipped dataset, or of several, one per family. May be given several times."),
    ],
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
    recipe: Annotated[
        str,
        typer.Option(
            help=f"A recipe that comes along: {', '.join(recipe_names())}. --config and the command line win.",
            callback=_recipe,
            is_eager=True,
        ),
    ] = "",
    phases: Annotated[
        str,
        typer.Option(
            help="JSON list of phases: objects with name, families, learning_rate, epochs, max_steps, warmup; best in "
            "a --config file. What a phase leaves out is as the flags have it."
        ),
    ] = "",
    layout: Annotated[
        Layout,
        typer.Option(help="turns: observations as user turns, as GRPO has them. inline: inside one answer, as Thyme."),
    ] = _DEFAULT.layout,
    epochs: Annotated[float, typer.Option(min=0.0, help="Passes over a phase's rows.")] = _DEFAULT.epochs,
    max_steps: Annotated[int, typer.Option(help="End a phase after so many steps; -1: after its epochs.")] = -1,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per step, of all processes.")] = _DEFAULT.batch_size,
    per_device: Annotated[
        int | None, typer.Option(min=1, help="Rows at a time in each process; default: its whole share of a step.")
    ] = None,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Peak of the schedule.")] = _DEFAULT.learning_rate,
    warmup: Annotated[float, typer.Option(min=0.0, max=0.99, help="Share of the steps that warm up.")] = 0.05,
    lora: Annotated[int, typer.Option(min=0, help="Rank of LoRA; 0 trains all weights. Merged when saved.")] = 0,
    freeze_vision: Annotated[bool, typer.Option("--freeze-vision", help="Leave the vision tower as it is.")] = False,
    min_pixels: Annotated[
        int | None, typer.Option(min=784, help="Scale images up to so many pixels; default: the model's own limit.")
    ] = None,
    max_pixels: Annotated[
        int | None, typer.Option(min=784, help="Scale images down to so many pixels; default: the model's own limit.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="The longest row that is let in; default: what the model reads.")
    ] = None,
    train_observations: Annotated[
        bool,
        typer.Option(
            "--train-observations",
            help="An ablation, never for use: every token after the question is trained, the sandbox's output as well.",
        ),
    ] = False,
    drop_nonconforming: Annotated[
        bool, typer.Option("--drop-nonconforming", help="Train on the rows that conform, and leave the others out.")
    ] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Go without the families of a phase that are not there.")
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

    Before the first step every row is checked against the model's tokenizer.
    Rows that do not conform stop the program, by their ids and with a report.
    To see which tokens of a row are trained: darkroom inspect-mask

    A paper's recipe, of which the command line changes what it says:
    python -m train.sft --recipe thyme --dataset data/datasets/sft ...

    A toy run, in seconds and without a GPU:
    python -m train.tiny TINY --dataset DATASET
    python -m train.sft --dataset DATASET --model TINY --output OUT
    --epochs 4 --batch-size 1 --learning-rate 1e-2

    Several GPUs: accelerate launch -m train.sft --dataset ...
    """
    with guarded():
        arguments = Arguments(
            recipe=recipe or (config.stem if config else ""),
            layout=layout,
            epochs=epochs,
            max_steps=max_steps,
            batch_size=batch_size,
            per_device=per_device,
            learning_rate=learning_rate,
            warmup=warmup,
            lora=lora,
            freeze_vision=freeze_vision,
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            max_tokens=max_tokens,
            train_observations=train_observations,
            drop_nonconforming=drop_nonconforming,
            skip_missing=skip_missing,
            seed=seed,
            phases=read_phases(phases, _over_phases(context)) if phases else (Phase(),),
        )
        finetune(dataset, model, output, arguments, save_steps=save_steps, force=force)


if __name__ == "__main__":
    typer.run(main)
