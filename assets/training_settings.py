"""What can be set for training in the launchpad, and the command lines that come of it.

What is left out is the program's own default or its recipe's; for the tiny model of the demo it is what suits that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import dagster as dg
from pydantic import Field

from assets.launching import Program
from assets.launching.program import Value

_FLAGS = "Other flags of `python -m {program} --help`, by name, as in {example}; `true` for a flag without a value."


class BaseModelConfig(dg.Config):
    """Which model training starts from."""

    path: str = Field(default="", description="Folder of a Qwen-VL model; empty: a tiny random one, built here.")
    seed: int = 0


class SftConfig(dg.Config):
    """Settings of ``python -m train.sft``."""

    recipe: str = Field(
        default="",
        description="A paper's recipe with its phases: thyme, pyvision, pyvision_video, codev or operation_aware; "
        "empty: one phase, as set here.",
    )
    families: list[str] = Field(
        default=[],
        description="Which of datasets/sft/<family> to train on; none: crop, or with a recipe all, from which its "
        "phases take theirs.",
    )
    epochs: float | None = Field(default=None, description="Passes over the dataset.")
    batch_size: int | None = Field(default=None, description="Rows per step, of all processes.")
    learning_rate: float | None = Field(default=None, description="Peak of the schedule.")
    lora: int = Field(default=0, description="Rank of LoRA adapters; 0 trains all weights.")
    max_pixels: int = Field(default=0, description="Images are scaled down to this many pixels; 0: the model's own.")
    save_steps: int = Field(
        default=0, description="Keep a restart point every so many steps; what was cancelled goes on from it. 0: none."
    )
    seed: int | None = Field(default=None, description="Seed of the order of rows; none: the recipe's, or 0.")
    flags: dict[str, str] = Field(default={}, description=_FLAGS.format(program="train.sft", example="warmup: 0.1"))


class GrpoConfig(dg.Config):
    """Settings of ``python -m train.grpo``."""

    method: str = Field(
        default="thyme", description="Whose reward and settings: thyme, pyvision, codev, adaptive or figr."
    )
    prompts: Literal["rl", "sft"] = Field(
        default="rl", description="rl: the questions of `rl_dataset`; sft: those of the SFT dataset of `family`."
    )
    family: str = Field(default="crop", description="With prompts sft: which of datasets/sft/<family> asks.")
    max_steps: int | None = Field(default=None, description="Stop after so many steps; -1: after the epochs.")
    generations: int | None = Field(default=None, description="Rollouts per prompt.")
    learning_rate: float | None = Field(default=None, description="Peak of the schedule.")
    temperature: float | None = Field(default=None, description="Of sampling.")
    repetition_penalty: float | None = Field(default=None, description="1 is none.")
    max_tokens: int | None = Field(default=None, description="Longest rollout after the prompt, observations included.")
    save_steps: int = Field(
        default=0, description="Keep a restart point every so many steps; what was cancelled goes on from it. 0: none."
    )
    seed: int = 0
    flags: dict[str, str] = Field(default={}, description=_FLAGS.format(program="train.grpo", example="beta: 0.01"))


class EvaluationConfig(dg.Config):
    """Settings of ``python -m train.evaluate``."""

    checkpoint: Literal["grpo", "sft", "base"] = Field(
        default="grpo", description="What is evaluated: grpo_checkpoint, sft_checkpoint, or the base model."
    )
    datasets: list[str] = Field(
        default=[],
        description="Whose held-out questions are asked, below datasets/: sft/<family>, rl/prompts; none: sft/crop and "
        "rl/prompts, as far as they are there.",
    )
    split: str = Field(default="validation", description="Of those datasets: validation, train or all.")
    benchmarks: dict[str, str] = Field(
        default={}, description="Benchmarks by name with their downloads, as in vstar_bench: /data/vstar_bench."
    )
    limit: int | None = Field(default=None, description="Only the first so many questions of each.")
    rollouts: int = Field(default=1, description="Per question, for avg@k and pass@k.")
    temperature: float = Field(default=0.0, description="0 takes the likeliest token.")
    max_tokens: int | None = Field(default=None, description="Longest turn.")
    controls: int = Field(
        default=0, description="So many rollouts are played again with blank and swapped pictures: do they matter?"
    )
    seed: int = 0
    flags: dict[str, str] = Field(
        default={}, description=_FLAGS.format(program="train.evaluate", example="judge_url: http://127.0.0.1:8000/v1")
    )


_TINY_SFT: Mapping[str, Value] = {"epochs": 3.0, "batch_size": 2, "learning_rate": 8e-3}
_TINY_GRPO: Mapping[str, Value] = {
    "max_steps": 1,
    "generations": 4,
    "learning_rate": 1e-6,
    "temperature": 0.6,  # it writes few programs above this
    "repetition_penalty": 1.0,
    "max_tokens": 512,
}


_TINY_EVALUATION: Mapping[str, Value] = {"limit": 4, "max_tokens": 200, "max_rounds": 2}


def tiny_program(folder: Path, datasets: list[Path], config: BaseModelConfig) -> Program:
    """Builds the tiny model, whose tokenizer knows the datasets."""
    arguments = [str(folder), "--seed", str(config.seed)]
    named = [word for dataset in datasets for word in ("--dataset", str(dataset))]
    return Program("train.tiny", folder, (*arguments, *named))


def sft_program(datasets: list[Path], model: Path, output: Path, config: SftConfig, *, tiny: bool) -> Program:
    """``python -m train.sft``."""
    given = _given(config, _TINY_SFT if tiny and not config.recipe else {}, "families")
    # 0 is what the recipe says, not none of it
    given |= {name: given[name] or None for name in ("lora", "max_pixels", "save_steps") if name in given}
    return Program.of("train.sft", output, {"dataset": [str(one) for one in datasets], "model": model, **given})


def grpo_program(dataset: Path, model: Path, output: Path, config: GrpoConfig, *, tiny: bool) -> Program:
    """``python -m train.grpo``."""
    given = _given(config, _TINY_GRPO if tiny else {}, "family", "prompts")
    return Program.of("train.grpo", output, {"dataset": dataset, "model": model, **given})


def evaluation_program(
    datasets: list[Path], model: Path, output: Path, config: EvaluationConfig, *, tiny: bool
) -> Program:
    """``python -m train.evaluate``."""
    given = _given(config, _TINY_EVALUATION if tiny else {}, "checkpoint", "datasets", "benchmarks")
    benchmarks = [f"{name}={path}" for name, path in config.benchmarks.items()]
    asked: dict[str, Value] = {"dataset": [str(dataset) for dataset in datasets], "benchmark": benchmarks}
    return Program.of("train.evaluate", output, {"model": model, **asked, **given})


def _given(config: dg.Config, defaults: Mapping[str, Value], *but: str) -> dict[str, Value]:
    """The flags that a configuration sets, over ``defaults``; those of its field ``flags`` by their own names."""
    values = config.model_dump(exclude={*but, "flags"})
    other: dict[str, str] = getattr(config, "flags", {})
    set_here = {name: value for name, value in values.items() if value is not None}
    return {**defaults, **set_here, **{name: _FLAG.get(value, value) for name, value in other.items()}}


_FLAG = {"true": True, "false": False}
