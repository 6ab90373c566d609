"""GRPO with code execution: the model writes code, the sandbox runs it, a paper's method rewards the rollouts.

    darkroom train grpo --method thyme --dataset data/datasets/rl --model data/checkpoints/sft \\
        --output data/checkpoints/grpo --max-steps 1

The output folder is the checkpoint with ``training.json`` (every metric of every step), ``reward.png`` and
``rollouts/`` (sample rollouts with their rewards). It appears as a whole; a training that was killed, or whose judge
became unavailable, resumes from its last checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from darkroom.pipelines.command_line.errors import program_of
from darkroom.train.rl.settings import GrpoSettings, JudgeOptions, added_names
from darkroom.train.runs.command_line import Values, config_option, guarded, takes_settings
from darkroom.train.runs.options import RunOptions, local_datasets
from darkroom.train.runs.reporting import ReportTo, choose_trackers

if TYPE_CHECKING:
    from darkroom.train.rl.methods import Judges
    from darkroom.train.runs.checkpoints import Staging
    from darkroom.train.runs.reporting import RunReporter


def reinforce(
    dataset: Path,
    model: Path,
    output: Path,
    settings: GrpoSettings,
    *,
    judges: Judges | None = None,
    save_steps: int = 0,
    force: bool = False,
    restart: bool = False,
) -> dict[str, Any]:
    """Train, write ``output`` and return its history. Raises ``UserError`` for inputs that cannot be trained on."""
    from darkroom.train.examples.datasets import held_out
    from darkroom.train.models.loading import require_model
    from darkroom.train.models.sharding import check_launch
    from darkroom.train.rl.methods import named_method
    from darkroom.train.rl.rollouts.prompts import check_prompts, open_prompts
    from darkroom.train.runs.job import TrainingJob, run_job, with_rows
    from darkroom.train.runs.options import split_options

    method = named_method(settings.method, settings.options)
    require_model(model)
    check_launch(lora=settings.lora, engine=settings.engine)
    split_options(settings.trainer, "grpo")  # raises for what cannot be passed on
    open_prompts(dataset)  # raises for what is no dataset
    words: dict[str, Any] = {"protocol": settings.protocol, "wording": settings.prompt}
    check_prompts(dataset, modes=sorted(set(method.modes(settings.generations))), **words)
    evaluated = None
    if settings.eval_every:
        evaluated = held_out([dataset], settings.eval_dataset, trained=[dataset])
        check_prompts(*evaluated.folders, part=evaluated.part, **words)
    job = TrainingJob("grpo", dataset, model, output, with_rows(settings.record), column="reward")

    def train(staging: Staging, report: RunReporter) -> list[dict[str, Any]]:
        from darkroom.train.rl.rollouts.training import GrpoRun

        return GrpoRun(job, settings, method, judges, evaluated, staging, report, save_steps).train()

    return run_job(job, train, force=force, restart=restart)


def _print_config(context: typer.Context, is_set: bool) -> None:
    """Print the settings so far on the command line, and of its file (the callback of ``--print-config``)."""
    if not is_set:
        return
    from darkroom.train.rl.methods import named_method, options_of, settings_of

    with guarded():
        options = {**(context.default_map or {}), **context.params}
        name = options.get("method") or "thyme"
        own = {key: options[key] for key in GrpoSettings.model_fields.keys() & options.keys() - {"method"}}
        settings = settings_of(name, **own, options=options.get("set"))
        method = named_method(name, settings.options)
        values = settings.model_dump(exclude={"judge", "options", "method_file"})
        values["set"] = [f"method.{field}={value}" for field, value in options_of(method).items()]
        for key, value in values.items():
            source = method.sources.get(key, "") if own.get(key) is None else ""
            line = yaml.safe_dump({key: value}).rstrip()
            typer.echo(f"{line}  # {source}" if source else line)
        for name in sorted(method.loss.keys() - settings.trainer.keys()):
            source = method.sources.get(f"trainer.{name}", "not in the paper")
            typer.echo(f"# trainer.{name}: {json.dumps(method.loss[name])}  # {source}")
    raise typer.Exit


@takes_settings
def main(
    dataset: Annotated[str, typer.Option(help="Folder or URL of the rl dataset, or of an sft one for its questions.")],
    model: Annotated[Path, typer.Option(help="The checkpoint to start from, of darkroom train sft with layout turns.")],
    output: Annotated[Path, typer.Option(help="Folder of the checkpoint; replaced as a whole when training ends.")],
    settings: Annotated[Values, GrpoSettings],
    judge: Annotated[Values, JudgeOptions],
    run: Annotated[Values, RunOptions],
    config: Annotated[Path | None, config_option("generations: 8")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="thyme, pyvision, codev, adaptive, figr, or one of the ablations and released methods above"
            + added_names()
        ),
    ] = "thyme",
    report_to: ReportTo = "none",
    print_config: Annotated[
        bool,
        typer.Option(
            "--print-config",
            help="Print all settings as YAML, with their sources in the paper, and end. Give it last.",
            callback=_print_config,
        ),
    ] = False,
) -> None:
    """Reinforce a model that writes code, with the sandbox in the loop.

    A method is a paper's reward with its settings; options that are not set
    have the paper's values. Observations are never trained, and rollouts
    that the sandbox broke have no effect.

    Ablations: thyme_without_consistency, thyme_code, thyme_process,
    pyvision_without_tool_reward, pyvision_without_sorting,
    codev_accuracy_only, codev_with_consistency,
    adaptive_without_necessity_rewards, adaptive_stored_necessity,
    figr_without_suitability, figr_without_visual_reward and
    figr_without_visual_feedback; as in released code thyme_released,
    pyvision_released and figr_released.

    Watch two numbers: `executable`, the proportion of code that ran without
    error, and `broken`, the proportion of rollouts that were dropped.

    A toy run, after the toy run of `darkroom train sft`:

    darkroom train grpo --dataset DATASET --model OUT --output OUT2
    --max-steps 1 --max-tokens 200 --repetition-penalty 1 --temperature 0.6

    Several GPUs: accelerate launch --no_python darkroom train grpo ...
    """
    with guarded():
        from darkroom.train.rl.judging.judge_config import judges_of
        from darkroom.train.rl.methods import settings_of

        choose_trackers(report_to, output)
        judges, identity = judges_of(**judge)
        chosen = settings_of(method, **settings, judge=identity)
        (folder,) = local_datasets([dataset])
        reinforce(folder, model, output, chosen, judges=judges, **run)


if __name__ == "__main__":
    program_of(main)()
