"""Training: ``train/`` programs in processes of their own, here or on a cluster, what they report streamed back."""

from pathlib import Path

import dagster as dg

from assets.datasets import SFT_DATASET
from assets.launching import LauncherResource, launch, run_here
from assets.resources import WorkspaceResource
from assets.rl import RL_DATASET
from assets.training_settings import (
    BaseModelConfig,
    EvaluationConfig,
    GrpoConfig,
    SftConfig,
    evaluation_program,
    grpo_program,
    sft_program,
    tiny_program,
)
from pipelines.rl.shipment import folder_of
from pipelines.workspace import Workspace

_POINTER = "base_model.txt"
_TINY = "tiny"
_EVALUATED = ("sft/crop", "rl/prompts")


@dg.asset(group_name="train", kinds={"pytorch"}, owners=["team:research"], deps=[SFT_DATASET])
def base_model(config: BaseModelConfig, workspace: WorkspaceResource) -> dg.MaterializeResult:
    """The model that training starts from: yours, or a tiny random Qwen2.5-VL whose tokenizer knows the dataset.

    Set `path` to a model's folder. The tiny model is for looking on: it trains in seconds without a GPU, and learns
    the form of the trajectories, nothing of the world.
    """
    opened = workspace.open()
    folder = Path(config.path) if config.path else opened.checkpoint(_TINY)
    if not config.path:
        datasets = [path for path in sorted((opened.home / "datasets" / "sft").glob("*")) if path.is_dir()]
        run_here(tiny_program(folder, datasets, config))
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
    launcher: LauncherResource,
) -> dg.MaterializeResult:
    """Supervised fine-tuning on the shipped dataset; what the sandbox said is masked out of the loss.

    Set `recipe` to a paper's, with its phases (`thyme`: images, then maths), or the schedule by hand. Every step is an
    observation of this asset: its numbers are plotted while it runs (Metadata, Plots). The rows are checked against the
    model's tokenizer first; rows that do not conform end the run, by their ids. The same inputs are not trained twice.
    Where it runs is the resource `launcher`: this machine, several GPUs, Ray, Slurm, Kubernetes.
    """
    opened = workspace.open()
    families = config.families or ([] if config.recipe else ["crop"])
    datasets = [opened.dataset("sft", family) for family in families] or [opened.home / "datasets" / "sft"]
    program = sft_program(datasets, _base_model(opened), opened.checkpoint("sft"), config, tiny=_is_tiny(opened))
    return launch(context, program, launcher)


@dg.asset(
    group_name="train",
    kinds={"pytorch", "huggingface"},
    owners=["team:research"],
    deps=[SFT_DATASET, RL_DATASET, sft_checkpoint],
)
def grpo_checkpoint(
    context: dg.AssetExecutionContext,
    config: GrpoConfig,
    workspace: WorkspaceResource,
    launcher: LauncherResource,
) -> dg.MaterializeResult:
    """Reinforcement learning from the fine-tuned checkpoint: the model writes programs, the sandbox runs them.

    The questions are those of `rl_dataset`, or with `prompts: sft` of a family's SFT dataset. Watch the share of
    programs that ran (`executable_rate`), the share of rollouts that were left out (`broken_rate`) and the sandbox's
    share of the time; below are sample rollouts with their code, pictures, reward and advantage.
    """
    opened = workspace.open()
    dataset = folder_of(opened) if config.prompts == "rl" else opened.dataset("sft", config.family)
    if not dataset.exists():
        raise dg.Failure(
            f"there is no {dataset}: materialise `{'rl' if config.prompts == 'rl' else 'sft'}_dataset` first, or set "
            "`prompts` to the other dataset (rl or sft)"
        )
    output = opened.checkpoint("grpo")
    program = grpo_program(dataset, opened.checkpoint("sft"), output, config, tiny=_is_tiny(opened))
    return launch(context, program, launcher)


@dg.asset(group_name="train", kinds={"pytorch"}, owners=["team:research"], deps=[SFT_DATASET, grpo_checkpoint])
def evaluation(
    context: dg.AssetExecutionContext,
    config: EvaluationConfig,
    workspace: WorkspaceResource,
    launcher: LauncherResource,
) -> dg.MaterializeResult:
    """A checkpoint on held-out questions, with its tools: right answers, what its programs do, whether they matter.

    Set `checkpoint` to compare stages (each keeps a report of its own), `benchmarks` for public ones, `rollouts` for
    avg@k and pass@k, `controls` to see whether the answer changes when the pictures are taken away.
    """
    opened = workspace.open()
    model = _base_model(opened) if config.checkpoint == "base" else opened.checkpoint(config.checkpoint)
    output = opened.home / "evaluations" / config.checkpoint
    datasets = [opened.home / "datasets" / name for name in config.datasets or _EVALUATED]
    if not config.datasets:
        datasets = [] if config.benchmarks else [folder for folder in datasets if folder.exists()]
    program = evaluation_program(datasets, model, output, config, tiny=_is_tiny(opened))
    return launch(context, program, launcher)


def _base_model(opened: Workspace) -> Path:
    pointer = _pointer(opened)
    if not pointer.exists():
        raise dg.Failure("there is no base model yet: materialise `base_model` first")
    return Path(pointer.read_text())


def _is_tiny(opened: Workspace) -> bool:
    return _base_model(opened) == opened.checkpoint(_TINY)


def _pointer(opened: Workspace) -> Path:
    """Where the choice of base model is noted for the assets below it."""
    return opened.checkpoint(_POINTER)
