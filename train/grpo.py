"""GRPO with code execution, on the questions of a shipped dataset: the model writes programs, the sandbox runs them.

    python -m train.grpo --dataset data/exports/sft --model data/checkpoints/sft --output data/checkpoints/grpo \\
        --max-steps 1

The output folder is the checkpoint with ``training.json`` (rewards, executable rate and loss of every step) and
``reward.png``. Every sample's question is a prompt once; its trajectory is not used, its answer is the gold answer.

Not covered: the consistency judge (it counts as 0), several programs at a time, vLLM, Thyme's adaptive temperature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.protocols import PROTOCOLS, ParsedTurn
from train.faults import TrainFault
from train.program import guarded, recipe_values

if TYPE_CHECKING:
    from train.checkpoints import Staging
    from train.job import Job
    from train.reporting import Report

COLUMNS = {
    "loss": "loss",
    "reward": "reward",
    "accuracy": "accuracy",
    "formatted": "formatted",
    "tool_calls": "programs per rollout",
    "executable_rate": "executable",
    "broken_rate": "broken",
}
ALSO_KEPT = ("reward_std", "kl", "entropy", "completions/mean_length", "learning_rate", "grad_norm")

RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"<code>\s*```python\s*\n",
            "close_pattern": r"\n?```\s*</code>\s*",
            "repeats": True,
            "content": "text",
            "transform": {
                "type": "function",
                "function": {"name": "run_python", "arguments": {"code": "{content}"}},
            },
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}
"""Tells transformers that a ``<code>`` block of the thyme protocol is a call of ``run_python``."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What determines a checkpoint besides its dataset and its model. The defaults are Thyme's where it names them."""

    max_steps: int = -1
    epochs: float = 1.0
    batch_size: int = 4
    generations: int = 4
    accumulation: int = 1
    learning_rate: float = 5e-7
    beta: float = 0.001
    temperature: float = 1.0
    repetition_penalty: float = 1.05
    max_tokens: int = 512
    max_rounds: int = 3
    lora: int = 0
    max_pixels: int | None = None
    seed: int = 0


def reinforce(
    dataset: Path, model: Path, output: Path, arguments: Arguments, *, save_steps: int = 0, force: bool = False
) -> dict[str, Any]:
    """Trains and writes ``output``; returns its history. Raises ``TrainFault`` for inputs that cannot be trained on."""
    from train.conformance import check_outlines
    from train.job import Job, run_job
    from train.models import require_model
    from train.rows import open_dataset, rows_without_pixels

    if arguments.batch_size * arguments.accumulation % arguments.generations:
        raise TrainFault(
            f"batch size x accumulation is {arguments.batch_size * arguments.accumulation}, which is no multiple of "
            f"{arguments.generations} generations: the rollouts of a prompt must be in one batch"
        )
    require_model(model)
    rows = open_dataset(dataset)
    check_outlines(rows_without_pixels(dataset))
    job = Job("grpo", dataset, model, output, asdict(arguments), column="reward")
    return run_job(job, partial(_train, job, rows, arguments, save_steps), force=force)


def outcome_rewards(
    completions: Sequence[Sequence[Mapping[str, Any]]],
    environments: Sequence[Any],
    answer: Sequence[str],
    choices: Sequence[Sequence[str]],
    protocol: Sequence[str],
    log_metric: Any,
    **_: Any,
) -> list[float | None]:
    """Thyme's reward for every rollout of a batch, and its parts as metrics. TRL calls it with the dataset's columns.

    A rollout without an answer is broken: its turn was malformed or cut off, or the rounds ran out. Raises
    ``TrainFault`` when this machine cannot execute code at all.
    """
    from train import rewards

    _require_sandbox(environments)
    rollouts = list(zip(completions, protocol, strict=True))
    texts = [written(completion) for completion in completions]
    answers = [_answer(completion, name) for completion, name in rollouts]
    judged = zip(answers, answer, choices, strict=True)
    accuracy = [rewards.accuracy(given, gold, choices=options) for given, gold, options in judged]
    formatted = [rewards.formatted(text) for text in texts]
    n_executions = sum(environment.n_executions for environment in environments)
    log_metric("accuracy", _mean(accuracy))
    log_metric("formatted", _mean(formatted))
    log_metric("broken_rate", _mean([float(given is None) for given in answers]))
    log_metric("tool_calls", n_executions / len(environments))
    if n_executions:
        log_metric("executable_rate", sum(environment.n_ok for environment in environments) / n_executions)
    pairs = zip(accuracy, formatted, strict=True)
    return [rewards.thyme(result=result, consistency=0.0, format=form) for result, form in pairs]


def written(completion: Sequence[Mapping[str, Any]]) -> str:
    """All that the model wrote in a rollout, without what the sandbox answered."""
    return "\n".join(_turn_text(message) for message in completion if message["role"] == "assistant")


def prompt(row: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset row as GRPO reads it: the opening, the question's images, and what the rewards need."""
    from train.conversations import opening

    kept = {name: row[name] for name in ("trajectory_id", "protocol", "answer", "choices")}
    videos = [video["bytes"] for video in row.get("videos") or ()]  # for the sandbox alone: no prompt shows a video
    images = list(row["images"] or [])[: row["n_question_images"]]
    return {"prompt": opening(row), "images": images, "videos": videos, **kept}


def _train(
    job: Job, rows: Any, arguments: Arguments, save_steps: int, staging: Staging, report: Report
) -> list[dict[str, Any]]:
    from transformers import PrinterCallback

    from train.history import read_steps
    from train.models import load_processor, save_checkpoint
    from train.reporting import StepReporter

    processor = load_processor(job.model, max_pixels=arguments.max_pixels)
    own_template = processor.chat_template
    trainer = build_trainer(rows, job.model, processor, arguments, steps=staging.steps, save_steps=save_steps)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(StepReporter(report, COLUMNS))
    report.line(f"{len(trainer.train_dataset)} prompts, {arguments.generations} rollouts each")
    trainer.accelerator.wait_for_everyone()  # the first process may still have been clearing the folder
    trainer.train(resume_from_checkpoint=staging.last_step())
    processor.tokenizer.response_template = None
    save_checkpoint(trainer, processor, staging.final, chat_template=own_template)
    trainer.accelerator.wait_for_everyone()
    return read_steps(trainer.state.log_history, (*COLUMNS, *ALSO_KEPT))


def build_trainer(
    rows: Any, model: Path, processor: Any, arguments: Arguments, *, steps: Path, save_steps: int = 0
) -> Any:
    """A ``GRPOTrainer`` whose rollouts execute code; ``processor`` is given the GRPO template."""
    from train.environment import SandboxEnvironment
    from train.models import load_model, lora_config
    from train.rollouts import MixedGRPOTrainer
    from train.rows import presented
    from train.templates import template

    processor.chat_template = template("grpo")
    processor.tokenizer.response_template = RESPONSE_TEMPLATE
    return MixedGRPOTrainer(
        load_model(model),
        reward_funcs=outcome_rewards,
        args=_config(arguments, processor, steps, save_steps),
        train_dataset=presented(_one_per_sample(rows), prompt),
        processing_class=processor,
        peft_config=lora_config(arguments.lora),
        environment_factory=SandboxEnvironment,
    )


def _config(arguments: Arguments, processor: Any, steps: Path, save_steps: int) -> Any:
    from trl.trainer.grpo_config import GRPOConfig

    from train.models import device_arguments, suppressed_tokens

    return GRPOConfig(
        output_dir=str(steps),
        max_steps=arguments.max_steps,
        num_train_epochs=arguments.epochs,
        per_device_train_batch_size=arguments.batch_size,
        num_generations=arguments.generations,
        gradient_accumulation_steps=arguments.accumulation,
        learning_rate=arguments.learning_rate,
        beta=arguments.beta,
        temperature=arguments.temperature,
        repetition_penalty=arguments.repetition_penalty,
        max_completion_length=arguments.max_tokens,
        max_tool_calling_iterations=arguments.max_rounds,
        # TRL suppresses <|image_pad|> only; any other vision token that is sampled crashes the step
        generation_kwargs={"suppress_tokens": suppressed_tokens(processor)},
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


def _one_per_sample(rows: Any) -> Any:
    first = {sample: index for index, sample in reversed(list(enumerate(rows["sample_id"])))}
    return rows.select(sorted(first.values()))


def _require_sandbox(environments: Sequence[Any]) -> None:
    from sandbox import SandboxUnavailable

    faults = [environment.fault for environment in environments if isinstance(environment.fault, SandboxUnavailable)]
    if faults:
        raise TrainFault(f"no program can be executed here: {faults[0]}")


def _answer(completion: Sequence[Mapping[str, Any]], protocol: str) -> str | None:
    if completion[-1]["role"] != "assistant":
        return None
    parsed = PROTOCOLS[protocol].parse(_turn_text(completion[-1]))
    return parsed.answer if isinstance(parsed, ParsedTurn) else None


def _turn_text(message: Mapping[str, Any]) -> str:
    """A turn as the model wrote it: TRL takes the code out of the text and keeps it as a call."""
    text: str = message.get("content") or ""
    for call in message.get("tool_calls") or ():
        code = call["function"]["arguments"]["code"]
        text = f"{text.rstrip()}\n<code>\n```python\n{code}\n```\n</code>"  # what RESPONSE_TEMPLATE took apart
    return text


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_DEFAULT = Arguments()


def main(
    dataset: Annotated[Path, typer.Option(help="Folder of a shipped dataset; its questions are the prompts.")],
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
    max_steps: Annotated[int, typer.Option(help="Stop after so many steps; -1: after the epochs.")] = -1,
    epochs: Annotated[float, typer.Option(min=0.0, help="Passes over the prompts.")] = _DEFAULT.epochs,
    batch_size: Annotated[int, typer.Option(min=1, help="Rollouts per step and process.")] = _DEFAULT.batch_size,
    generations: Annotated[int, typer.Option(min=2, help="Rollouts per prompt.")] = _DEFAULT.generations,
    accumulation: Annotated[int, typer.Option(min=1, help="Batches per step: batch size without memory.")] = 1,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Peak of the schedule.")] = _DEFAULT.learning_rate,
    beta: Annotated[float, typer.Option(min=0.0, help="Weight of KL; 0 needs no reference model.")] = _DEFAULT.beta,
    temperature: Annotated[float, typer.Option(min=0.01, help="Of sampling.")] = _DEFAULT.temperature,
    repetition_penalty: Annotated[float, typer.Option(min=1.0, help="1 is none.")] = _DEFAULT.repetition_penalty,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Longest rollout after the prompt, observations included.")
    ] = _DEFAULT.max_tokens,
    max_rounds: Annotated[int, typer.Option(min=1, help="Programs that a rollout may run.")] = _DEFAULT.max_rounds,
    lora: Annotated[int, typer.Option(min=0, help="Rank of LoRA; 0 trains all weights. Merged when saved.")] = 0,
    max_pixels: Annotated[
        int | None, typer.Option(min=784, help="Scale images down to so many pixels; default: the model's own limit.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of sampling and of the order of prompts.")] = 0,
    save_steps: Annotated[
        int, typer.Option(min=0, help="Keep a restart point every so many steps; a restart goes on from it. 0: none.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Train even if the output is complete.")] = False,
) -> None:
    """Reinforce a model that writes code, with the sandbox in the loop.

    Reward of a rollout: accuracy x (1 + 0.5 x consistency) + 0.5 x format.
    What the sandbox showed is never trained.

    Watch two numbers: `executable`, the share of programs that ran without
    error, and `broken`, the share of rollouts without an answer.

    A toy run, after the toy run of train.sft:
    python -m train.grpo --dataset DATASET --model OUT --output OUT2
    --max-steps 1 --max-tokens 200 --repetition-penalty 1 --temperature 0.6

    Several GPUs: accelerate launch -m train.grpo --dataset ...
    """
    arguments = Arguments(
        max_steps=max_steps,
        epochs=epochs,
        batch_size=batch_size,
        generations=generations,
        accumulation=accumulation,
        learning_rate=learning_rate,
        beta=beta,
        temperature=temperature,
        repetition_penalty=repetition_penalty,
        max_tokens=max_tokens,
        max_rounds=max_rounds,
        lora=lora,
        max_pixels=max_pixels,
        seed=seed,
    )
    with guarded():
        reinforce(dataset, model, output, arguments, save_steps=save_steps, force=force)


if __name__ == "__main__":
    typer.run(main)
