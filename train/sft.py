"""Supervised fine-tuning on shipped datasets, in one process or with ``accelerate launch``.

    darkroom train sft --dataset data/datasets/sft --model data/models/qwen --output data/checkpoints/sft \\
        --recipe thyme

The output folder is the checkpoint (LoRA weights merged in) with ``training.json`` (phases, loss of every step, inputs
by digest, versions) and ``loss.png``. It appears as a whole; re-running with the same inputs does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from darkroom.pipelines.command_line.errors import program_of
from darkroom.sandbox.errors import raised_as
from darkroom.train.finetuning.settings import (
    SftSettings,
    folders_of,
    read_phases,
    recipe_names,
    recipe_path,
    share_of_batch,
)
from darkroom.train.runs import TrainError
from darkroom.train.runs.command_line import Values, config_option, guarded, recipe_values, takes_settings
from darkroom.train.runs.options import RunOptions, assigned, local_datasets
from darkroom.train.runs.reporting import ReportTo, choose_trackers

if TYPE_CHECKING:
    from darkroom.train.runs.checkpoints import Staging
    from darkroom.train.runs.reporting import RunReporter


def finetune(
    datasets: Path | Sequence[Path],
    model: Path,
    output: Path,
    settings: SftSettings,
    *,
    save_steps: int = 0,
    force: bool = False,
    restart: bool = False,
) -> dict[str, Any]:
    """Train, write ``output`` and return its history. Raises ``UserError`` for inputs that cannot be trained on.
    ``datasets`` are folders of one dataset or of several; each phase selects its families among them."""
    from darkroom.train.examples.datasets import count_rows, open_dataset
    from darkroom.train.models.loading import check_weights, require_model
    from darkroom.train.models.sharding import check_launch
    from darkroom.train.runs.job import TrainingJob, run_job, with_rows
    from darkroom.train.runs.options import split_options

    folders_of_datasets = [datasets] if isinstance(datasets, Path) else list(datasets)
    require_model(model)
    check_launch(lora=settings.lora)
    split_options(settings.trainer, "sft")
    share_of_batch(settings)
    planned = [
        (phase, tuple(folders_of(phase, folders_of_datasets, skip_missing=settings.skip_missing)))
        for phase in settings.planned
    ]
    for _, folders in planned:
        if not count_rows(*folders):
            open_dataset(*folders)  # raises with the reason
    read = tuple(dict.fromkeys(folder for _, folders in planned for folder in folders))
    common = Path(os.path.commonpath(read)) if len(read) > 1 else read[0]
    job = TrainingJob("sft", common, model, output, with_rows(settings.record), column="loss", folders=read)

    def train(staging: Staging, report: RunReporter) -> list[dict[str, Any]]:
        from darkroom.train.examples.encoding import open_reader
        from darkroom.train.finetuning.phases import SftRun

        check_weights(model)
        ablations = {"train_observations", "loss_policy", "without_comments"}
        read_as = settings.model_dump(include={"layout", "min_pixels", "max_pixels"} | ablations)
        run = SftRun(model, open_reader(model, **read_as), settings, staging, report, save_steps)
        return run.train(run.check_rows(planned, output.parent / ".conformance"))

    return run_job(job, train, force=force, restart=restart)


def _recipe(context: typer.Context, name: str) -> str:
    """Make a recipe's values the defaults of options that ``--config`` does not set (the callback of ``--recipe``)."""
    if name:
        from_file = dict(context.default_map or {})
        with raised_as(lambda error: typer.BadParameter(str(error)), TrainError):
            recipe_values(context, recipe_path(name))
        context.default_map = {**(context.default_map or {}), **from_file}
    return name


def _schedule_options(context: typer.Context) -> dict[str, Any]:
    """The options of a phase's schedule that stand on the command line: they override every phase of a file."""
    names = ("phases", "learning_rate", "epochs", "max_steps", "warmup")
    source = context.get_parameter_source
    typed = {name: context.params[name] for name in names if (origin := source(name)) and origin.name == "COMMANDLINE"}
    return {} if "phases" in typed else typed


@takes_settings
def main(
    context: typer.Context,
    dataset: Annotated[list[str], typer.Option(help="Folder or URL of a shipped dataset, or of several; repeatable.")],
    model: Annotated[Path, typer.Option(help="Folder of the model to start from.")],
    output: Annotated[Path, typer.Option(help="Folder of the checkpoint; replaced as a whole when training ends.")],
    settings: Annotated[Values, SftSettings],
    run: Annotated[Values, RunOptions],
    config: Annotated[Path | None, config_option("learning_rate: 1e-5")] = None,
    recipe: Annotated[
        str,
        typer.Option(
            help=f"A bundled recipe: {', '.join(recipe_names())}. --config and the command line take precedence.",
            callback=_recipe,
            is_eager=True,
        ),
    ] = "",
    report_to: ReportTo = "none",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", help="An argument of TRL's trainer, as in trainer.optim=sgd. May be repeated."),
    ] = None,
) -> None:
    """Fine-tune a vision-language model on trajectories.

    The loss is on the model's own text, as each row's loss policy says.
    Observations are never trained.

    Before the first step every row is checked against the model's tokenizer.
    Rows that do not conform stop training, by their ids and with a report.
    To see which tokens of a row are trained: darkroom inspect-mask

    A paper's recipe; options on the command line override it:

    darkroom train sft --recipe thyme --dataset data/datasets/sft ...

    A toy run, in seconds and without a GPU:

    darkroom train tiny TINY --dataset DATASET

    darkroom train sft --dataset DATASET --model TINY --output OUT
    --epochs 4 --batch-size 1 --learning-rate 1e-2

    Several GPUs: accelerate launch --no_python darkroom train sft ...
    """
    with guarded():
        choose_trackers(report_to, output)
        phases = settings.pop("phases")
        texts = assignments or []
        if wrong := [text for text in texts if not text.startswith("trainer.") or "=" not in text]:
            raise TrainError(f"--set takes trainer.NAME=VALUE, as in trainer.weight_decay=0.1; found {wrong[0]!r}")
        settings["trainer"] = {**assigned(settings["trainer"]), **assigned(texts)}
        if phases:
            settings["phases"] = read_phases(phases, _schedule_options(context))
        chosen = SftSettings(recipe=recipe or (config.stem if config else ""), **settings)
        finetune(local_datasets(dataset), model, output, chosen, **run)


if __name__ == "__main__":
    program_of(main)()
