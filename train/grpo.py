"""GRPO with code execution: the model writes programs, the sandbox runs them, a paper's method rewards the rollouts.

    python -m train.grpo --method thyme --dataset data/datasets/rl --model data/checkpoints/sft \\
        --output data/checkpoints/grpo --max-steps 1

The output folder is the checkpoint with ``training.json`` (every metric of every step), ``reward.png`` and
``rollouts/`` (some rollouts of some steps, with what they earned). It appears whole; a program that was killed, or that
a judge left in the lurch, goes on from its last restart point.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from train.faults import JudgeDown, TrainFault
from train.program import guarded, recipe_values

if TYPE_CHECKING:
    from train.checkpoints import Staging
    from train.job import Job
    from train.methods import Judges, Method
    from train.reporting import Report

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

Engine = Literal["transformers", "vllm_colocate", "vllm_server"]


@dataclass(frozen=True, slots=True)
class Arguments:
    """What determines a checkpoint besides its dataset and its model. None is what the method's paper has."""

    method: str = "thyme"
    protocol: str | None = None
    max_steps: int = -1
    epochs: float = 1.0
    batch_size: int = 4
    accumulation: int = 1
    generations: int | None = None
    learning_rate: float | None = None
    beta: float | None = None
    epsilon: float = 0.2
    temperature: float | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    adaptive_temperature: bool | None = None
    oversample: float | None = None
    max_rounds: int | None = None
    max_tokens: int = 4096
    lora: int = 0
    min_pixels: int | None = None
    max_pixels: int | None = None
    engine: Engine = "transformers"
    judge: str = ""
    seed: int = 0

    def settled(self, method: Method) -> Arguments:
        """With the method's own terms in the place of what was not given. Raises ``TrainFault``."""
        terms = {field.name: getattr(method.terms, field.name) for field in fields(method.terms)}
        missing = {name: value for name, value in terms.items() if name in _OF_TERMS and getattr(self, name) is None}
        settled = replace(self, protocol=self.protocol or method.protocol, **missing)
        _require_whole_groups(settled)
        return settled


_OF_TERMS = (
    "generations",
    "learning_rate",
    "beta",
    "temperature",
    "top_p",
    "repetition_penalty",
    "adaptive_temperature",
    "oversample",
    "max_rounds",
)


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
    from train.methods import METHODS
    from train.models import require_model
    from train.prompts import check_prompts, open_prompts

    if arguments.method not in METHODS:
        raise TrainFault(f"unknown method {arguments.method!r}; known: {', '.join(METHODS)}")
    method = METHODS[arguments.method]()
    settled = arguments.settled(method)
    require_model(model)
    rows = open_prompts(dataset)
    assert settled.protocol is not None
    assert settled.generations is not None
    check_prompts(dataset, protocol=settled.protocol, modes=sorted(set(method.modes(settled.generations))))
    job = Job("grpo", dataset, model, output, asdict(settled), column="reward")
    train = partial(_train, job, rows, settled, method, judges, save_steps)
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
    from train.reporting import StepReporter
    from train.showcase import Showcase

    processor = load_processor(job.model, max_pixels=arguments.max_pixels)
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
        showcase=Showcase(staging.final / "rollouts"),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, COLUMNS))
    report.line(f"{len(trainer.train_dataset)} prompts, {arguments.generations} rollouts each: {method.says}")
    if judges is None or judges.policy is None:
        report.line(f"no judge (--judge-url); one would be asked {method.wants_judge}")
    trainer.accelerator.wait_for_everyone()  # the first process may still have been clearing the folder
    try:
        trainer.train(resume_from_checkpoint=staging.last_step())
    except JudgeDown as fault:
        trainer._save_checkpoint(trainer.model, trial=None)
        raise JudgeDown(
            f"{fault}\nstep {trainer.state.global_step} is saved: run the same command to go on from it"
        ) from fault
    processor.tokenizer.response_template = None
    save_checkpoint(trainer, processor, staging.final, chat_template=own_template)
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
    """A trainer whose rollouts execute code; ``arguments`` are settled, ``processor`` is given the GRPO template."""
    from train.methods import Judges
    from train.models import load_model, lora_config
    from train.prompts import prompts
    from train.rollouts import SandboxGRPOTrainer, Way
    from train.templates import template

    assert arguments.protocol is not None
    assert arguments.max_rounds is not None
    processor.chat_template = template("grpo")
    processor.tokenizer.response_template = _PLAIN_RESPONSE
    way = Way(
        method=method,
        judges=judges or Judges(),
        max_rounds=arguments.max_rounds,
        adaptive_temperature=bool(arguments.adaptive_temperature),
        oversample=arguments.oversample or 1.0,
    )
    return SandboxGRPOTrainer(
        load_model(model),
        way=way,
        watch=showcase,
        args=_config(arguments, method, processor, steps, save_steps),
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


def _config(arguments: Arguments, method: Method, processor: Any, steps: Path, save_steps: int) -> Any:
    from trl.trainer.grpo_config import GRPOConfig

    from train.models import device_arguments, suppressed_tokens

    suppressed = suppressed_tokens(processor)
    with_vllm = arguments.engine != "transformers"
    # TRL suppresses <|image_pad|> only; any other vision token that is sampled crashes the step
    forbidden = {"logit_bias": dict.fromkeys(suppressed, -100.0)} if with_vllm else {"suppress_tokens": suppressed}
    oversampled = round(arguments.batch_size * (arguments.oversample or 1.0))
    return GRPOConfig(
        output_dir=str(steps),
        max_steps=arguments.max_steps,
        num_train_epochs=arguments.epochs,
        per_device_train_batch_size=oversampled,
        num_generations=arguments.generations,
        gradient_accumulation_steps=arguments.accumulation,
        learning_rate=arguments.learning_rate,
        beta=arguments.beta,
        epsilon=arguments.epsilon,
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        repetition_penalty=arguments.repetition_penalty,
        scale_rewards=method.terms.scale,
        loss_type=method.terms.loss_type,
        max_completion_length=arguments.max_tokens,
        max_tool_calling_iterations=arguments.max_rounds,
        generation_kwargs=forbidden,
        use_vllm=with_vllm,
        vllm_mode="server" if arguments.engine == "vllm_server" else "colocate",
        seed=arguments.seed,
        data_seed=arguments.seed,
        logging_steps=1,
        save_strategy="steps" if save_steps else "no",
        save_steps=save_steps or 500,
        save_total_limit=2,
        report_to="none",
        disable_tqdm=True,
        **device_arguments(),
    )


def _require_whole_groups(arguments: Arguments) -> None:
    generations, oversample = arguments.generations or 1, arguments.oversample or 1.0
    n_kept = arguments.batch_size * arguments.accumulation
    if n_kept % generations:
        raise TrainFault(
            f"batch size x accumulation is {n_kept}, which is no multiple of {generations} generations: the rollouts "
            "of a prompt must be in one batch"
        )
    oversampled = arguments.batch_size * oversample
    if oversample < 1 or oversampled != round(oversampled) or round(oversampled) * arguments.accumulation % generations:
        raise TrainFault(
            f"--oversample {oversample:g} of a batch of {arguments.batch_size} x {arguments.accumulation} gives no "
            f"whole groups of {generations}; choose a batch size of which {oversample:g} times is a multiple of them"
        )


_DEFAULT = Arguments()


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
        str, typer.Option(help="thyme, pyvision, codev, adaptive or figr; --list-methods says more.")
    ] = _DEFAULT.method,
    protocol: Annotated[
        str | None, typer.Option(help="thyme, pyvision or tool_call, for rl rows; default: the method's.")
    ] = None,
    max_steps: Annotated[int, typer.Option(help="Stop after so many steps; -1: after the epochs.")] = -1,
    epochs: Annotated[float, typer.Option(min=0.0, help="Passes over the prompts.")] = _DEFAULT.epochs,
    batch_size: Annotated[int, typer.Option(min=1, help="Rollouts trained per step and process.")] = 4,
    accumulation: Annotated[int, typer.Option(min=1, help="Batches per step: batch size without memory.")] = 1,
    generations: Annotated[int | None, typer.Option(min=2, help="Rollouts per prompt.")] = None,
    learning_rate: Annotated[float | None, typer.Option(min=0.0, help="Peak of the schedule.")] = None,
    beta: Annotated[float | None, typer.Option(min=0.0, help="Weight of KL; 0 needs no reference model.")] = None,
    epsilon: Annotated[float, typer.Option(min=0.0, help="How far a ratio may go before it is clipped.")] = 0.2,
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
    ] = _DEFAULT.max_tokens,
    lora: Annotated[int, typer.Option(min=0, help="Rank of LoRA; 0 trains all weights. Merged when saved.")] = 0,
    min_pixels: Annotated[int | None, typer.Option(min=784, help="Scale images up to so many pixels.")] = None,
    max_pixels: Annotated[
        int | None, typer.Option(min=784, help="Scale images down to so many pixels; default: the model's own limit.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Who generates: this process, or vLLM in it or in `trl vllm-serve`.")
    ] = "transformers",
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
    arguments = Arguments(
        method=method,
        protocol=protocol,
        max_steps=max_steps,
        epochs=epochs,
        batch_size=batch_size,
        accumulation=accumulation,
        generations=generations,
        learning_rate=learning_rate,
        beta=beta,
        epsilon=epsilon,
        temperature=temperature,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        adaptive_temperature=adaptive_temperature,
        oversample=oversample,
        max_rounds=max_rounds,
        max_tokens=max_tokens,
        lora=lora,
        min_pixels=min_pixels,
        max_pixels=max_pixels,
        engine=engine,
        seed=seed,
    )
    with guarded():
        reinforce(dataset, model, output, arguments, save_steps=save_steps, force=force)


if __name__ == "__main__":
    typer.run(main)
