"""``darkroom train``: the training programs, and ``environment`` for packages that Darkroom's own cannot have."""

from typing import Annotated, Literal

import typer

from darkroom.pipelines.command_line.console import print_line
from darkroom.pipelines.models.serving.engines import Device
from darkroom.sandbox.help_text import Commands
from darkroom.train import grpo, sft, tiny

app = Commands(no_args_is_help=True, help="Train: SFT, GRPO, a tiny model to try them with.")
for program in (sft, grpo, tiny):
    app.command(name=program.__name__.rpartition(".")[2])(program.main)


@app.command()
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
