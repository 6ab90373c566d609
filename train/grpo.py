"""GRPO with code execution: the model writes programs, the sandbox runs them, a paper's method rewards the rollouts.

    python -m train.grpo --method thyme --dataset data/datasets/rl --model data/checkpoints/sft \\
        --output data/checkpoints/grpo --max-steps 1

The output folder is the checkpoint with ``training.json`` (every metric of every step), ``reward.png`` and
``rollouts/`` (some rollouts of some steps, with what they earned). It appears whole; a program that was killed, or that
a judge left in the lurch, goes on from its last restart point.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from train.faults import JudgeDown
from train.options import Engine, LossType, Rubric, Scale, Schedule
from train.program import guarded, recipe_values

if TYPE_CHECKING:
    from train.checkpoints import Staging
    from train.job import Job
    from train.methods import Judges, Method
    from train.reporting import Report
    from train.rollouts.settings import Arguments

COLUMNS = {
    "loss": "loss",
    "reward": "reward",
    "accuracy": "accuracy",
    "tool_calls": "programs per rollout",
    "executable_rate": "executable",
    "broken_rate": "broken",
}
ALSO_KEPT = (
    "reward_std",
    "group_std",
    "positive_with_negative_advantage",
    "answered",
    "tool_use",
    "turns",
    "tokens",
    "images_shown",
    "kl",
    "entropy",
    "clip_ratio/region_mean",
    "sandbox/seconds",
    "sandbox/waiting_share",
    "completions/clipped_ratio",
    "step_time",
    "learning_rate",
    "grad_norm",
)
OF_METHOD = ("parts/", "groups/")
"""Beginnings of the names of metrics that a method adds."""


def reinforce(
    dataset: Path,
    model: Path,
    output: Path,
    arguments: Arguments,
    *,
    judges: Judges | None = None,
    save_steps: int = 0,
    force: bool = False,
) -> dict[str, Any]:
    """Trains and writes ``output``; returns its history. Raises ``TrainFault`` for inputs that cannot be trained on."""
    from train.job import Job, run_job
    from train.models import require_model
    from train.rollouts.prompts import check_prompts, open_prompts
    from train.rollouts.settings import named_method

    method = named_method(arguments.method)
    require_model(model)
    rows = open_prompts(dataset)
    check_prompts(dataset, protocol=arguments.protocol, modes=sorted(set(method.modes(arguments.generations))))
    job = Job("grpo", dataset, model, output, asdict(arguments), column="reward")
    train = partial(_train, job, rows, arguments, method, judges, save_steps)
    return run_job(job, train, force=force)


def _train(
    job: Job,
    rows: Any,
    arguments: Arguments,
    method: Method,
    judges: Judges | None,
    save_steps: int,
    staging: Staging,
    report: Report,
) -> list[dict[str, Any]]:
    from transformers import PrinterCallback

    from train.history import read_steps
    from train.models import load_processor, save_checkpoint
    from train.program import is_first_process
    from train.reporting import StepReporter
    from train.rollouts.showcase import Showcase

    shown = staging.folder / "rollouts"  # outlives a restart, as the trainer's own restart points do
    processor = load_processor(job.model, min_pixels=arguments.min_pixels, max_pixels=arguments.max_pixels)
    own_template = processor.chat_template
    trainer = build_trainer(
        rows,
        job.model,
        processor,
        arguments,
        method=method,
        judges=judges,
        steps=staging.steps,
        save_steps=save_steps,
        showcase=Showcase(shown) if is_first_process() else None,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, COLUMNS))
    report.line(f"{len(trainer.train_dataset)} prompts, {arguments.generations} rollouts each: {method.says}")
    if judges is None or judges.policy is None:
        report.line(f"no judge (--judge-url); one would be asked {method.wants_judge}")
    trainer.accelerator.wait_for_everyone()  # the first process may still have been clearing the folder
    try:
        trainer.train(resume_from_checkpoint=staging.last_step())
    except JudgeDown:
        trainer._save_checkpoint(trainer.model, trial=None)
        report.line(f"step {trainer.state.global_step} is saved")
        raise
    processor.tokenizer.response_template = None
    save_checkpoint(trainer, processor, staging.final, chat_template=own_template)
    if is_first_process() and shown.is_dir():
        shown.rename(staging.final / shown.name)
    trainer.accelerator.wait_for_everyone()
    history = trainer.state.log_history
    of_method = sorted({name for entry in history for name in entry if name.startswith(OF_METHOD)})
    return read_steps(history, (*COLUMNS, *of_method, *ALSO_KEPT))


def build_trainer(
    rows: Any,
    model: Path,
    processor: Any,
    arguments: Arguments,
    *,
    method: Method,
    steps: Path,
    judges: Judges | None = None,
    save_steps: int = 0,
    showcase: Any = None,
) -> Any:
    """A trainer whose rollouts execute code; ``processor`` is given the GRPO template."""
    from train.methods import Judges
    from train.models import load_model, lora_config, model_type
    from train.rollouts.prompts import prompts
    from train.rollouts.settings import config
    from train.rollouts.trainer import SandboxGRPOTrainer, Way
    from train.templates import template

    processor.chat_template = template("grpo", model_type(model))
    processor.tokenizer.response_template = _PLAIN_RESPONSE
    way = Way(
        method=method,
        judges=judges or Judges(),
        generations=arguments.generations,
        max_rounds=arguments.max_rounds,
        max_tokens=arguments.max_tokens,
        scale=arguments.scale,
        adaptive_temperature=arguments.adaptive_temperature,
        oversample=arguments.oversample,
    )
    return SandboxGRPOTrainer(
        load_model(model),
        way=way,
        watch=showcase,
        args=config(arguments, processor, steps=steps, save_steps=save_steps),
        train_dataset=prompts(rows, protocol=arguments.protocol),
        processing_class=processor,
        peft_config=lora_config(arguments.lora),
    )


_PLAIN_RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {"content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"}},
}
"""TRL wants to know how a turn is taken apart wherever there are tools; here the protocols do it."""


def main(
    dataset: Annotated[Path, typer.Option(help="Folder of the rl dataset, or of an sft dataset for its questions.")],
    model: Annotated[
        Path, typer.Option(help="Folder of the checkpoint to start from, of train.sft with layout turns.")
    ],
    output: Annotated[Path, typer.Option(help="Folder of the checkpoint; replaced whole when training is done.")],
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with values for any of these flags, as in `generations: 8`; the command line wins.",
            callback=recipe_values,
            is_eager=True,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="thyme, pyvision, codev, adaptive or figr; ablations thyme_code and thyme_process; as released "
            "code has it thyme_released, pyvision_released and figr_released."
        ),
    ] = "thyme",
    protocol: Annotated[
        str | None, typer.Option(help="thyme, pyvision or tool_call, for rl rows; default: the method's.")
    ] = None,
    max_steps: Annotated[int, typer.Option(help="Stop after so many steps; -1: after the epochs.")] = -1,
    epochs: Annotated[float | None, typer.Option(min=0.0, help="Passes over the prompts.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Rollouts trained per batch and process; default: one group.")
    ] = None,
    accumulation: Annotated[int, typer.Option(min=1, help="Batches per step: batch size without memory.")] = 1,
    generations: Annotated[int | None, typer.Option(min=2, help="Rollouts per prompt.")] = None,
    learning_rate: Annotated[float | None, typer.Option(min=0.0, help="Peak of the schedule.")] = None,
    schedule: Annotated[Schedule, typer.Option(help="How the learning rate goes on from its peak.")] = "linear",
    beta: Annotated[float | None, typer.Option(min=0.0, help="Weight of KL; 0 needs no reference model.")] = None,
    epsilon: Annotated[float, typer.Option(min=0.0, help="How far a ratio may go before it is clipped.")] = 0.2,
    loss_type: Annotated[
        LossType | None, typer.Option(help="grpo: every rollout weighs the same; dapo: every token of the batch.")
    ] = None,
    scale: Annotated[
        Scale | None, typer.Option(help="group: advantages are divided by the group's standard deviation.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0.01, help="Of sampling.")] = None,
    top_p: Annotated[float | None, typer.Option(min=0.01, max=1.0, help="Of sampling; 1 is all.")] = None,
    repetition_penalty: Annotated[float | None, typer.Option(min=1.0, help="1 is none.")] = None,
    adaptive_temperature: Annotated[
        bool | None, typer.Option("--ats/--no-ats", help="GRPO-ATS: temperature 0 inside code.")
    ] = None,
    oversample: Annotated[
        float | None, typer.Option(min=1.0, help="Groups rolled out for each that is trained on.")
    ] = None,
    max_rounds: Annotated[int | None, typer.Option(min=1, help="Programs that a rollout may run.")] = None,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Longest rollout after the prompt, observations included.")
    ] = 4096,
    lora: Annotated[int, typer.Option(min=0, help="Rank of LoRA; 0 trains all weights. Merged when saved.")] = 0,
    min_pixels: Annotated[int | None, typer.Option(min=784, help="Scale images up to so many pixels.")] = None,
    max_pixels: Annotated[
        int | None, typer.Option(min=784, help="Scale images down to so many pixels; default: the model's own limit.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Who generates: this process, or vLLM in it or in `trl vllm-serve`.")
    ] = "transformers",
    judge_url: Annotated[
        str, typer.Option(help="OpenAI-compatible endpoint of the judge; default: DARKROOM_JUDGE… of the environment.")
    ] = "",
    judge_model: Annotated[str, typer.Option(help="The judge's name at --judge-url.")] = "",
    judge_votes: Annotated[
        int | None, typer.Option(min=1, help="Votes per question; default: as the environment says, else 1.")
    ] = None,
    judge_rubric: Annotated[
        Rubric, typer.Option(help="What a picture earns that shows nothing asked for: 0 (strict), or 0.25 (paper).")
    ] = "strict",
    seed: Annotated[int, typer.Option(help="Seed of sampling and of the order of prompts.")] = 0,
    save_steps: Annotated[
        int, typer.Option(min=0, help="Keep a restart point every so many steps; a restart goes on from it. 0: none.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Train even if the output is complete.")] = False,
) -> None:
    """Reinforce a model that writes code, with the sandbox in the loop.

    A method is a paper's reward with its settings; what you do not set is
    the paper's. What the sandbox showed is never trained, and rollouts that
    the sandbox broke move nothing.

    Watch two numbers: `executable`, the share of programs that ran without
    error, and `broken`, the share of rollouts that were left out.

    A toy run, after the toy run of train.sft:
    python -m train.grpo --dataset DATASET --model OUT --output OUT2
    --max-steps 1 --max-tokens 200 --repetition-penalty 1 --temperature 0.6

    Several GPUs: accelerate launch -m train.grpo --dataset ...
    """
    given = {
        "protocol": protocol,
        "max_steps": max_steps,
        "epochs": epochs,
        "batch_size": batch_size,
        "accumulation": accumulation,
        "generations": generations,
        "learning_rate": learning_rate,
        "schedule": schedule,
        "beta": beta,
        "epsilon": epsilon,
        "loss_type": loss_type,
        "scale": scale,
        "temperature": temperature,
        "top_p": top_p,
        "repetition_penalty": repetition_penalty,
        "adaptive_temperature": adaptive_temperature,
        "oversample": oversample,
        "max_rounds": max_rounds,
        "max_tokens": max_tokens,
        "lora": lora,
        "min_pixels": min_pixels,
        "max_pixels": max_pixels,
        "engine": engine,
        "seed": seed,
    }
    with guarded():
        from train.judging.opening import judges_of
        from train.rollouts.settings import Arguments

        judges, known_as = judges_of(judge_url, judge_model, n_votes=judge_votes, rubric=judge_rubric)
        arguments = Arguments.of(method, **given, judge=known_as)
        reinforce(dataset, model, output, arguments, judges=judges, save_steps=save_steps, force=force)


if __name__ == "__main__":
    typer.run(main)
