"""``darkroom train`` and ``inspect-mask``: the training programs, and what a model reads of a row."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from darkroom.assets.commands.choices import datasets
from darkroom.pipelines.command_line.console import open_workspace, print_line
from darkroom.pipelines.command_line.groups import panelled_group
from darkroom.pipelines.models.serving.engines import Device
from darkroom.pipelines.records.trajectories import LossPolicy
from darkroom.train import grpo, sft, tiny
from darkroom.train.examples.encoding import Layout

_Dataset = Annotated[
    str,
    typer.Argument(help="A family, `all`, or a folder with one or several datasets.", autocompletion=datasets),
]
_Model = Annotated[Path, typer.Option(help="Folder of the model to be trained.")]
_Layout = Annotated[Layout, typer.Option(help="turns: observations as user turns. inline: inside the answer.")]
_Pixels = Annotated[int | None, typer.Option(min=784, help="As in `darkroom train sft`.")]


def inspect_mask(
    dataset: _Dataset,
    model: _Model,
    row: Annotated[int, typer.Option(min=0, help="Index of the row, from 0.")] = 0,
    layout: _Layout = "turns",
    min_pixels: _Pixels = None,
    max_pixels: _Pixels = None,
    train_observations: Annotated[
        bool,
        typer.Option("--train-observations", help="Train on observations too (ablation of `darkroom train sft`)."),
    ] = False,
    loss_policy: Annotated[LossPolicy | None, typer.Option(help="Ablation: instead of what the row says.")] = None,
    without_comments: Annotated[
        bool, typer.Option("--without-comments", help="Ablation: code is read without its comments.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write an HTML page with the row's images instead.")] = None,
) -> None:
    """Show which tokens of a row are trained (green) and which are masked (dim), as `darkroom train sft` encodes it.

    `darkroom inspect-mask crop --model data/checkpoints/tiny --row 3`
    """
    from darkroom.train.examples.encoding import open_reader
    from darkroom.train.examples.loss_mask import mask_of, row_at, show
    from darkroom.train.runs.command_line import guarded

    with guarded():
        conversation = row_at(local_trajectories(dataset), row)  # before the model's libraries are imported: seconds
        reader = open_reader(
            model,
            layout=layout,
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            train_observations=train_observations,
            loss_policy=loss_policy,
            without_comments=without_comments,
        )
        show(mask_of(conversation, reader, model), out)


def local_trajectories(dataset: str) -> list[Path]:
    """The folders of a dataset's trajectories, copied from an object store where they lie there."""
    from darkroom.pipelines.publishing.dataset_reader import find_trajectories
    from darkroom.pipelines.storage.atomic_write import local_copy

    with open_workspace() as workspace:
        folders = find_trajectories(dataset, workspace.home / "datasets" / "sft")
        copies = workspace.local / "datasets"
        return [local_copy(folder, copies / folder.parent.name / folder.name) for folder in folders]


def environment(
    name: Annotated[Literal["vllm"], typer.Argument(help="vllm: for --engine vllm_colocate and vllm_server.")],
    device: Annotated[Device, typer.Option(help="An NVIDIA GPU, or for small models this CPU.")] = "gpu",
) -> None:
    """Install an environment with Darkroom and vLLM, once, and print its `darkroom`.

    `$(darkroom train environment vllm) train grpo --engine vllm_colocate --method thyme ...`

    It lies below DARKROOM_ENVIRONMENTS; versions are those of train/launch/vllm.lock, on a CPU of vllm_cpu.lock.
    """
    from darkroom.pipelines.models.serving.engines import has_nvidia_gpu
    from darkroom.pipelines.storage.workspace import Workspace
    from darkroom.train.runs.vllm_environment import training_environment

    with Workspace.from_environment() as workspace:
        folder = workspace.environments / f"train-{name}{'-cpu' if device == 'cpu' else ''}"
    installed = training_environment(folder, device)
    if device == "gpu" and not installed.is_installed and not has_nvidia_gpu():
        typer.echo(
            "this machine shows no NVIDIA GPU, which the environment needs; for this CPU: --device cpu", err=True
        )
    installed.ensure()
    print_line(str(installed.program))


app = panelled_group(
    {
        "Programs": {"sft": sft.main, "grpo": grpo.main, "tiny": tiny.main},
        "Packages": {"environment": environment},
    },
    help="Train: SFT, GRPO, a tiny model to try them with.",
)
