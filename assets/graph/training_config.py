"""The launchpad's settings of training, from the programs' own settings models, and the command lines that follow.
Unset values are the program's own defaults or its recipe's; for the tiny model of the demo they are chosen here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import yaml
from pydantic import Field

from darkroom.assets.clusters.programs import Program, Value, flag_words
from darkroom.assets.graph.resources import LaunchpadSettings
from darkroom.train.evaluation.settings import EvaluationSettings
from darkroom.train.finetuning.settings import SftSettings, recipe_names
from darkroom.train.rl.settings import GrpoSettings
from darkroom.train.runs.command_line import ProgramSettings

_FLAGS = "Other options of `python -m {module} --help`, by name, as in {example}; `true` for an option without a value."


def _option(model: type[ProgramSettings], name: str, default: Any = None) -> Any:
    """The field ``name`` of a program's settings, for the launchpad; None is the program's own default."""
    field = model.model_fields[name]
    bounds = {name: getattr(extra, name) for extra in field.metadata for name in ("ge", "le") if hasattr(extra, name)}
    return Field(default=default, description=field.description, **bounds)


def _flags(module: str, example: str) -> Any:
    return Field(default={}, description=_FLAGS.format(module=module, example=example))


class BaseModelConfig(LaunchpadSettings):
    """The model that training starts from."""

    path: str = ""
    """Folder of a Qwen-VL model; empty: a tiny random one, built here."""
    seed: int = 0
    datasets: list[str] = Field(default=[])
    """Whose texts the tiny model's tokenizer knows, by folders below datasets/; none: all of sft/."""
    flags: dict[str, str] = _flags("darkroom.train.tiny", "spread: 0.1")


class SftConfig(LaunchpadSettings):
    """Settings of ``python -m darkroom.train.sft``."""

    recipe: str = Field(
        default="",
        description=f"A paper's recipe with its phases: {', '.join(recipe_names())}; empty: one phase, as set here.",
    )
    families: list[str] = Field(default=[])
    """Which of datasets/sft/<family> to train on; none: crop, or with a recipe all, of which its phases take theirs."""
    datasets: list[str] = Field(default=[])
    """Other datasets to train on, by their folders below datasets/."""
    epochs: float | None = _option(SftSettings, "epochs")
    batch_size: int | None = _option(SftSettings, "batch_size")
    learning_rate: float | None = _option(SftSettings, "learning_rate")
    lora: int = _option(SftSettings, "lora", 0)
    max_pixels: int = 0
    """Scale larger images down to this many pixels; 0: the model's own."""
    save_steps: int = 0
    """Save a checkpoint every so many steps, from which a cancelled run resumes. 0: none."""
    seed: int | None = _option(SftSettings, "seed")
    eval_every: int | None = _option(SftSettings, "eval_every")
    early_stop: int | None = _option(SftSettings, "early_stop")
    keep_best: bool = _option(SftSettings, "keep_best", False)
    flags: dict[str, str] = _flags("darkroom.train.sft", "warmup: 0.1")


class GrpoConfig(LaunchpadSettings):
    """Settings of ``python -m darkroom.train.grpo``."""

    method: str = "thyme"
    """Whose reward and settings: thyme, pyvision, codev, adaptive, figr, an ablation, or a file (DARKROOM_METHODS)."""
    method_fields: dict[str, str] = Field(default={})
    """Fields of the method, as in weight_tool: 0.3."""
    prompts: Literal["rl", "sft"] = "rl"
    """rl: the questions of `rl_dataset`; sft: those of the SFT dataset of `family`."""
    family: str = "crop"
    """With prompts sft: which of datasets/sft/<family> is used."""
    dataset: str = ""
    """Another dataset with the questions, by its folder below datasets/."""
    max_steps: int | None = _option(GrpoSettings, "max_steps")
    generations: int | None = _option(GrpoSettings, "generations")
    learning_rate: float | None = _option(GrpoSettings, "learning_rate")
    temperature: float | None = _option(GrpoSettings, "temperature")
    repetition_penalty: float | None = _option(GrpoSettings, "repetition_penalty")
    max_tokens: int | None = _option(GrpoSettings, "max_tokens")
    save_steps: int = 0
    """Save a checkpoint every so many steps, from which a cancelled run resumes. 0: none."""
    seed: int = _option(GrpoSettings, "seed", 0)
    eval_every: int | None = _option(GrpoSettings, "eval_every")
    early_stop: int | None = _option(GrpoSettings, "early_stop")
    keep_best: bool = _option(GrpoSettings, "keep_best", False)
    flags: dict[str, str] = _flags("darkroom.train.grpo", "beta: 0.01")


class EvaluationConfig(LaunchpadSettings):
    """Settings of ``python -m darkroom.train.evaluate``."""

    checkpoint: Literal["grpo", "sft", "base"] = "grpo"
    """What is evaluated: grpo_checkpoint, sft_checkpoint, or the base model."""
    datasets: list[str] = Field(default=[])
    """Datasets with held-out questions, below datasets/: sft/<family>, rl/prompts; none: sft/crop and rl/prompts, as
    far as they have rows in the split."""
    split: str = _option(EvaluationSettings, "split", "validation")
    benchmarks: dict[str, str] = Field(default={})
    """Benchmarks by name with their downloads, as in vstar_bench: /data/vstar_bench."""
    strict: bool = _option(EvaluationSettings, "strict", False)
    limit: int | None = _option(EvaluationSettings, "limit")
    rollouts: int = _option(EvaluationSettings, "rollouts", 1)
    temperature: float = _option(EvaluationSettings, "temperature", 0.0)
    max_tokens: int | None = _option(EvaluationSettings, "max_tokens")
    controls: int = _option(EvaluationSettings, "controls", 0)
    seed: int = _option(EvaluationSettings, "seed", 0)
    flags: dict[str, str] = _flags("darkroom.train.evaluate", "judge_url: http://127.0.0.1:8000/v1")


_TINY, DEMO_SETTINGS = (
    yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    for name in ("tiny_model.yaml", "demo_training.yaml")
)
"""By asset: with which settings `darkroom demo` trains, as the launchpad takes them."""


def tiny_program(folder: Path, datasets: list[Path], config: BaseModelConfig) -> Program:
    """Builds the tiny model, whose tokenizer knows the datasets."""
    options = _options(config, {"dataset": [str(dataset) for dataset in datasets]}, "path", "datasets")
    words = [word for name, value in options.items() for word in flag_words(name, value)]
    return Program("darkroom.train.tiny", (str(folder), *words))


def sft_program(datasets: list[Path], model: Path, output: Path, config: SftConfig, *, tiny: bool) -> Program:
    of_tiny = _TINY["darkroom.train.sft"] if tiny and not config.recipe else {}
    options = _options(config, of_tiny, "families", "datasets")
    # 0 stands for the recipe's value, not for none
    options |= {name: options[name] or None for name in ("lora", "max_pixels", "save_steps") if name in options}
    rows: dict[str, Value] = {"dataset": [str(path) for path in datasets], "model": model}
    return Program.of("darkroom.train.sft", {**rows, **options, "output": output})


def grpo_program(dataset: Path, model: Path, output: Path, config: GrpoConfig, *, tiny: bool) -> Program:
    of_tiny = _TINY["darkroom.train.grpo"] if tiny else {}
    options = _options(config, of_tiny, "family", "prompts", "dataset", "method_fields")
    fields = [f"method.{name}={value}" for name, value in config.method_fields.items()]
    questions: dict[str, Value] = {"dataset": dataset, "model": model}
    return Program.of("darkroom.train.grpo", {**questions, **options, "set": fields, "output": output})


def evaluation_program(
    datasets: list[Path], model: Path, output: Path, config: EvaluationConfig, *, tiny: bool
) -> Program:
    options = _options(config, _TINY["darkroom.train.evaluate"] if tiny else {}, "checkpoint", "datasets", "benchmarks")
    benchmarks = [f"{name}={path}" for name, path in config.benchmarks.items()]
    questions: dict[str, Value] = {"dataset": [str(dataset) for dataset in datasets], "benchmark": benchmarks}
    return Program.of("darkroom.train.evaluate", {"model": model, **questions, **options, "output": output})


def _options(config: dg.Config, defaults: Mapping[str, Value], *but: str) -> dict[str, Value]:
    """The options that a configuration sets, over ``defaults``; those of its field ``flags`` by their own names."""
    values = config.model_dump(exclude={*but, "flags"}, exclude_none=True)
    flags: dict[str, str] = getattr(config, "flags", {})
    return {**defaults, **values, **{name: _BOOLEANS.get(value, value) for name, value in flags.items()}}


_BOOLEANS = {"true": True, "false": False}
