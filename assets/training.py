"""Training: ``train/`` programs in processes of their own, their loss streamed back through Pipes."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
from pydantic import Field

from assets.datasets import SFT_DATASET
from assets.resources import WorkspaceResource
from pipelines.workspace import Workspace


class BaseModelConfig(dg.Config):
    """Which model training starts from."""

    path: str = Field(default="", description="Folder of a Qwen-VL model; empty: a tiny random one, built here.")
    seed: int = 0


class SftConfig(dg.Config):
    """Settings of ``python -m train.sft``; the defaults suit the tiny model on a CPU."""

    family: str = Field(default="crop", description="Which of datasets/sft/<family> to train on.")
    epochs: float = 3.0
    batch_size: int = 2
    learning_rate: float = 8e-3
    lora: int = Field(default=0, description="Rank of LoRA adapters; 0 trains all weights.")
    max_pixels: int = Field(default=0, description="Images are scaled down to this many pixels; 0: the model's own.")
    seed: int = 0


class GrpoConfig(dg.Config):
    """Settings of ``python -m train.grpo``; the defaults make one step on a CPU."""

    family: str = Field(default="crop", description="Which of datasets/sft/<family> gives the prompts.")
    max_steps: int = 1
    generations: int = 4
    learning_rate: float = 1e-6
    temperature: float = Field(default=0.6, description="Of sampling; the tiny model writes few programs above this.")
    repetition_penalty: float = 1.0
    max_tokens: int = Field(default=512, description="Longest rollout after the prompt, observations included.")
    seed: int = 0


_POINTER = "base_model.txt"


@dg.asset(group_name="train", kinds={"pytorch"}, owners=["team:research"], deps=[SFT_DATASET])
def base_model(
    context: dg.AssetExecutionContext,
    config: BaseModelConfig,
    workspace: WorkspaceResource,
    pipes: dg.PipesSubprocessClient,
) -> dg.MaterializeResult:
    """The model that training starts from: yours, or a tiny random Qwen2.5-VL whose tokenizer knows the dataset."""
    opened = workspace.open()
    folder = Path(config.path) if config.path else opened.checkpoint("tiny")
    if not config.path:
        datasets = [str(path) for path in sorted((opened.home / "datasets" / "sft").glob("*")) if path.is_dir()]
        arguments = [str(folder), "--seed", str(config.seed), *_flags("--dataset", datasets)]
        _run(context, pipes, "train.tiny", arguments)
    elif not (folder / "config.json").exists():
        raise dg.Failure(f"{folder} holds no model: there is no config.json. Set `path` to a model's folder.")
    _pointer(opened).parent.mkdir(parents=True, exist_ok=True)
    _pointer(opened).write_text(str(folder))
    return dg.MaterializeResult(metadata={"folder": dg.MetadataValue.path(str(folder)), "tiny": not config.path})


@dg.asset(
    group_name="train", kinds={"pytorch", "huggingface"}, owners=["team:research"], deps=[SFT_DATASET, base_model]
)
def sft_checkpoint(
    context: dg.AssetExecutionContext,
    config: SftConfig,
    workspace: WorkspaceResource,
    pipes: dg.PipesSubprocessClient,
) -> dg.MaterializeResult:
    """Supervised fine-tuning on the shipped dataset; what the sandbox said is masked out of the loss."""
    opened = workspace.open()
    arguments = [
        *("--dataset", str(opened.dataset("sft", config.family))),
        *("--model", _base_model(opened)),
        *("--output", str(opened.checkpoint("sft"))),
        *("--epochs", str(config.epochs)),
        *("--batch-size", str(config.batch_size)),
        *("--learning-rate", str(config.learning_rate)),
        *("--lora", str(config.lora)),
        *("--seed", str(config.seed)),
        *(("--max-pixels", str(config.max_pixels)) if config.max_pixels else ()),
    ]
    return _run(context, pipes, "train.sft", arguments)


@dg.asset(
    group_name="train", kinds={"pytorch", "huggingface"}, owners=["team:research"], deps=[SFT_DATASET, sft_checkpoint]
)
def grpo_checkpoint(
    context: dg.AssetExecutionContext,
    config: GrpoConfig,
    workspace: WorkspaceResource,
    pipes: dg.PipesSubprocessClient,
) -> dg.MaterializeResult:
    """Reinforcement learning from the fine-tuned checkpoint, with the sandbox as its environment."""
    opened = workspace.open()
    arguments = [
        *("--dataset", str(opened.dataset("sft", config.family))),
        *("--model", str(opened.checkpoint("sft"))),
        *("--output", str(opened.checkpoint("grpo"))),
        *("--max-steps", str(config.max_steps)),
        *("--generations", str(config.generations)),
        *("--learning-rate", str(config.learning_rate)),
        *("--temperature", str(config.temperature)),
        *("--repetition-penalty", str(config.repetition_penalty)),
        *("--max-tokens", str(config.max_tokens)),
        *("--seed", str(config.seed)),
    ]
    return _run(context, pipes, "train.grpo", arguments)


def _run(
    context: dg.AssetExecutionContext, pipes: dg.PipesSubprocessClient, module: str, arguments: Sequence[str]
) -> dg.MaterializeResult:
    """Runs a program of ``train/``; fails with its own last words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # Pipes' own use of what Dagster calls a preview
        done = pipes.run(context=context, command=[sys.executable, "-m", module, *arguments])
    return done.get_materialize_result()


def _base_model(opened: Workspace) -> str:
    pointer = _pointer(opened)
    if not pointer.exists():
        raise dg.Failure("there is no base model yet: materialise `base_model` first")
    return pointer.read_text()


def _pointer(opened: Workspace) -> Path:
    """Where the choice of base model is noted for the assets below it."""
    return opened.checkpoint(_POINTER)


def _flags(name: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (name, value)]
