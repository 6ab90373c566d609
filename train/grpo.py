"""GRPO with code execution: the model writes code, the sandbox runs it, a paper's method rewards the rollouts.

    python -m train.grpo --method thyme --dataset data/datasets/rl --model data/checkpoints/sft \\
        --output data/checkpoints/grpo --max-steps 1

The output folder is the checkpoint with ``training.json`` (every metric of every step), ``reward.png`` and
``rollouts/`` (sample rollouts with their rewards). It appears as a whole; a training that was killed, or whose judge
became unavailable, resumes from its last checkpoint.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from train.rl.settings import GrpoSettings, JudgeOptions, added_names
from train.runs import JudgeDown
from train.runs.command_line import Values, config_option, guarded, takes_settings

if TYPE_CHECKING:
    from train.rl.methods import Judges, Method
    from train.runs.checkpoints import Staging
    from train.runs.job import TrainingJob
    from train.runs.reporting import RunReporter


def reinforce(
    dataset: Path,
    model: Path,
    output: Path,
    settings: GrpoSettings,
    *,
    judges: Judges | None = None,
    save_steps: int = 0,
    force: bool = False,
) -> dict[str, Any]:
    """Trains, writes ``output`` and returns its history. Raises ``TrainError`` for inputs that cannot be trained on."""
    from train.models.loading import model_type
    from train.models.sharding import check_launch
    from train.rl.methods import named_method
    from train.rl.rollouts.prompts import check_prompts, open_prompts
    from train.runs.job import TrainingJob, run_job
    from train.runs.trainer_options import split_options

    method = named_method(settings.method, settings.options)
    model_type(model)  # raises for no model
    check_launch(lora=settings.lora, engine=settings.engine)
    split_options(settings.trainer, "grpo")  # raises for what cannot be passed on
    rows = open_prompts(dataset)
    modes = sorted(set(method.modes(settings.generations)))
    check_prompts(dataset, protocol=settings.protocol, modes=modes, wording=settings.prompt)
    job = TrainingJob("grpo", dataset, model, output, settings.record, column="reward")
    train = partial(_train, job, rows, settings, method, judges, save_steps)
    return run_job(job, train, force=force)


def _train(
    job: TrainingJob,
    rows: Any,
    settings: GrpoSettings,
    method: Method,
    judges: Judges | None,
    save_steps: int,
    staging: Staging,
    report: RunReporter,
) -> list[dict[str, Any]]:
    from train.models.loading import context_length, load_processor, model_type, save_checkpoint, template
    from train.models.sharding import note_on_launch
    from train.rl.rollouts.prompt_lengths import check_lengths
    from train.rl.rollouts.sample_log import SampleLog
    from train.runs.command_line import is_first_process
    from train.runs.history import read_steps
    from train.runs.job import report_steps

    samples = staging.folder / "rollouts"  # survives a restart, as the trainer's checkpoints do
    processor = load_processor(job.model, min_pixels=settings.min_pixels, max_pixels=settings.max_pixels)
    own_template, processor.chat_template = processor.chat_template, template("grpo", model_type(job.model))
    check_lengths(
        job.dataset,
        processor,
        protocol=settings.protocol,
        modes=set(method.modes(settings.generations)),
        max_tokens=settings.max_tokens,
        context=context_length(job.model),
        wording=settings.prompt,
    )
    trainer = build_trainer(
        rows,
        job.model,
        processor,
        settings,
        method=method,
        judges=judges,
        steps=staging.steps,
        save_steps=save_steps,
        sample_log=SampleLog(samples) if is_first_process() else None,
    )
    report_steps(trainer, report, "grpo")
    if note := note_on_launch(trainer):
        report.line(note)
    report.line(f"{len(trainer.train_dataset)} prompts, {settings.generations} rollouts each: {method.says}")
    if judges is None or judges.policy is None:
        report.line(f"no judge (--judge-url); one would be asked {method.wants_judge}")
    trainer.accelerator.wait_for_everyone()  # the first process may still be clearing the folder
    try:
        trainer.train(resume_from_checkpoint=staging.last_step())
    except JudgeDown:
        trainer._save_checkpoint(trainer.model, trial=None)
        report.line(f"step {trainer.state.global_step} is saved")
        raise
    processor.tokenizer.response_template = None
    save_checkpoint(trainer, processor, staging.final, base=job.model, chat_template=own_template)
    if is_first_process() and samples.is_dir():
        samples.rename(staging.final / samples.name)
    trainer.accelerator.wait_for_everyone()
    return read_steps(trainer.state.log_history, "grpo")


def build_trainer(
    rows: Any,
    model: Path,
    processor: Any,
    settings: GrpoSettings,
    *,
    method: Method,
    steps: Path,
    judges: Judges | None = None,
    save_steps: int = 0,
    sample_log: Any = None,
) -> Any:
    """A trainer whose rollouts execute code; sets the GRPO template on ``processor``."""
    from train.models.loading import load_model, lora_config, model_type, template
    from train.rl.methods import Judges
    from train.rl.rollouts.environment import PLAIN_RESPONSE
    from train.rl.rollouts.prompts import prompts
    from train.rl.rollouts.trainer import SandboxGRPOTrainer
    from train.runs.trainer_options import split_options

    processor.chat_template = template("grpo", model_type(model))
    processor.tokenizer.response_template = PLAIN_RESPONSE
    arguments = _config(settings, processor, steps, save_steps)  # before the model: it starts the process group
    return SandboxGRPOTrainer(
        load_model(
            model,
            keeps_float32=not settings.lora and not settings.bf16_weights,
            **split_options(settings.trainer, "grpo")[1],
        ),
        settings=settings,
        method=method,
        judges=judges or Judges(),
        watch=sample_log,
        args=arguments,
        train_dataset=prompts(rows, protocol=settings.protocol, wording=settings.prompt),
        processing_class=processor,
        peft_config=lora_config(settings.lora),
    )


_SAME_NAMES = {"learning_rate", "beta", "epsilon", "temperature", "top_p", "repetition_penalty"}
"""Settings that TRL calls as we do."""


def _config(settings: GrpoSettings, processor: Any, steps: Path, save_steps: int) -> Any:
    from trl.trainer.grpo_config import GRPOConfig

    from train.models.loading import suppressed_tokens, trainer_arguments
    from train.runs.trainer_options import configured, split_options

    suppressed = suppressed_tokens(processor)
    with_vllm = settings.engine != "transformers"
    # TRL suppresses <|image_pad|> only; any other vision token that is sampled crashes the step
    forbidden = {"logit_bias": dict.fromkeys(suppressed, -100.0)} if with_vllm else {"suppress_tokens": suppressed}
    arguments = {
        **settings.model_dump(include=_SAME_NAMES),
        **trainer_arguments(steps, seed=settings.seed, save_steps=save_steps),
        "loss_type": "dapo",  # over a mask that weighs the tokens: train.rl.rollouts.update.weighted
        "max_steps": settings.max_steps,
        "num_train_epochs": settings.epochs,
        "per_device_train_batch_size": round(settings.batch_size * settings.oversample),
        "num_generations": settings.generations,
        "gradient_accumulation_steps": settings.accumulation,
        "lr_scheduler_type": settings.schedule,
        "scale_rewards": settings.scale,
        "max_completion_length": settings.max_tokens,
        "max_tool_calling_iterations": settings.max_rounds,
        "generation_kwargs": forbidden,
        "use_vllm": with_vllm,
        "vllm_mode": "server" if settings.engine == "vllm_server" else "colocate",
        "log_multimodal": False,  # TRL gathers images from all processes, and hangs where one has none
    }
    return configured(GRPOConfig, arguments, split_options(settings.trainer, "grpo")[0])


def _print_config(context: typer.Context, wanted: bool) -> None:
    """The callback of ``--print-config``: the settings so far on the command line, and of its file."""
    if not wanted:
        return
    from train.rl.methods import named_method, options_of, settings_of

    with guarded():
        given = {**(context.default_map or {}), **context.params}
        name = given.get("method") or "thyme"
        own = {key: given[key] for key in GrpoSettings.model_fields.keys() & given.keys() - {"method"}}
        settings = settings_of(name, **own, options=given.get("set"))
        method, values = (
            named_method(name, settings.options),
            settings.model_dump(exclude={"judge", "options", "method_file"}),
        )
        values["set"] = [f"method.{field}={value}" for field, value in options_of(method).items()]
        for key, value in values.items():
            source = method.sources.get(key, "") if own.get(key) is None else ""
            line = yaml.safe_dump({key: value}).rstrip()
            typer.echo(f"{line}  # {source}" if source else line)
    raise typer.Exit


@takes_settings
def main(
    dataset: Annotated[Path, typer.Option(help="Folder of the rl dataset, or of an sft dataset for its questions.")],
    model: Annotated[
        Path, typer.Option(help="Folder of the checkpoint to start from, of train.sft with layout turns.")
    ],
    output: Annotated[Path, typer.Option(help="Folder of the checkpoint; replaced as a whole when training ends.")],
    settings: Annotated[Values, GrpoSettings],
    judge: Annotated[Values, JudgeOptions],
    config: Annotated[Path | None, config_option("generations: 8")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="thyme, pyvision, codev, adaptive or figr; ablations thyme_without_consistency, thyme_code, "
            "thyme_process, pyvision_without_tool_reward, pyvision_without_sorting, codev_accuracy_only, "
            "codev_with_consistency, adaptive_without_necessity_rewards, adaptive_stored_necessity, "
            "figr_without_suitability, figr_without_visual_reward and figr_without_visual_feedback; as in released "
            "code thyme_released, pyvision_released and figr_released" + added_names()
        ),
    ] = "thyme",
    save_steps: Annotated[
        int, typer.Option(min=0, help="Save a checkpoint every so many steps, from which training resumes. 0: none.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Train even if the output is complete.")] = False,
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

    Watch two numbers: `executable`, the proportion of code that ran without
    error, and `broken`, the proportion of rollouts that were dropped.

    A toy run, after the toy run of train.sft:
    python -m train.grpo --dataset DATASET --model OUT --output OUT2
    --max-steps 1 --max-tokens 200 --repetition-penalty 1 --temperature 0.6

    Several GPUs: accelerate launch -m train.grpo --dataset ...
    """
    with guarded():
        from train.rl.judging.judge_config import judges_of
        from train.rl.methods import settings_of

        judges, identity = judges_of(**judge)
        chosen = settings_of(method, **settings, judge=identity)
        reinforce(dataset, model, output, chosen, judges=judges, save_steps=save_steps, force=force)


if __name__ == "__main__":
    typer.run(main)
