"""What determines a GRPO checkpoint besides its dataset and its model, and how TRL is told."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from train.faults import TrainFault
from train.methods import METHODS, Method
from train.options import Engine, LossType, Scale, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """``of`` takes what is not given from the method's paper."""

    method: str
    protocol: str
    generations: int
    learning_rate: float
    max_rounds: int
    beta: float
    temperature: float
    top_p: float
    repetition_penalty: float
    scale: Scale
    loss_type: LossType
    epochs: float
    oversample: float
    adaptive_temperature: bool
    batch_size: int
    """Rollouts that are trained on, per process and backward pass; one group where nothing is said."""
    max_steps: int = -1
    schedule: Schedule = "linear"
    accumulation: int = 1
    epsilon: float = 0.2
    max_tokens: int = 4096
    lora: int = 0
    min_pixels: int | None = None
    max_pixels: int | None = None
    engine: Engine = "transformers"
    judge: str = ""
    """Model, votes and settings of the judge, as one text."""
    seed: int = 0

    @classmethod
    def of(cls, method: str, **given: Any) -> Arguments:
        """``given`` over the method's terms; None is not given. Raises ``TrainFault`` for what does not go together."""
        known = named_method(method)
        chosen = {name: value for name, value in given.items() if value is not None}
        terms = {"method": method, "protocol": known.protocol, **asdict(known.terms), **chosen}
        arguments = cls(**{"batch_size": terms["generations"], **terms})
        _require_whole_groups(arguments)
        _require_one_asker(arguments)
        return arguments


def named_method(name: str) -> Method:
    """A method by its name. Raises ``TrainFault`` for one that is not known."""
    if name not in METHODS:
        raise TrainFault(f"unknown method {name!r}; known: {', '.join(METHODS)}")
    return METHODS[name]()


def config(arguments: Arguments, processor: Any, *, steps: Path, save_steps: int) -> Any:
    """TRL's configuration; ``steps`` is where its restart points go."""
    from trl.trainer.grpo_config import GRPOConfig

    from train.models import device_arguments, suppressed_tokens

    suppressed = suppressed_tokens(processor)
    with_vllm = arguments.engine != "transformers"
    # TRL suppresses <|image_pad|> only; any other vision token that is sampled crashes the step
    forbidden = {"logit_bias": dict.fromkeys(suppressed, -100.0)} if with_vllm else {"suppress_tokens": suppressed}
    oversampled = round(arguments.batch_size * arguments.oversample)
    return GRPOConfig(
        output_dir=str(steps),
        max_steps=arguments.max_steps,
        num_train_epochs=arguments.epochs,
        per_device_train_batch_size=oversampled,
        num_generations=arguments.generations,
        gradient_accumulation_steps=arguments.accumulation,
        learning_rate=arguments.learning_rate,
        lr_scheduler_type=arguments.schedule,
        beta=arguments.beta,
        epsilon=arguments.epsilon,
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        repetition_penalty=arguments.repetition_penalty,
        scale_rewards=arguments.scale,
        loss_type=arguments.loss_type,
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
    generations, oversample = arguments.generations, arguments.oversample
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


def _require_one_asker(arguments: Arguments) -> None:
    if arguments.engine == "vllm_server" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise TrainFault(
            "a vLLM server is asked by all training processes at once, and their rollouts do not take the same number "
            "of turns: train in one process, or with --engine vllm_colocate"
        )
