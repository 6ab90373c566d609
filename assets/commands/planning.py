"""``darkroom train``: the training programs, ``plan``: whether a training fits, and how long it takes, and
``environment``: where training needs packages that Darkroom's own environment cannot have."""

from typing import Annotated, Literal

import typer

from darkroom.pipelines.command_line.console import print_line
from darkroom.pipelines.models.serving.engines import Device
from darkroom.sandbox.help_text import Commands
from darkroom.train import grpo, sft, tiny

app = Commands(no_args_is_help=True, help="Plan a training, and train: SFT, GRPO, a tiny model to try them with.")
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


@app.command()
def plan(
    model: Annotated[str, typer.Option(help="A folder with config.json, or a size like 7B or qwen3-vl-8b.")],
    gpus: Annotated[int, typer.Option(min=1, help="GPUs, one process on each.")] = 8,
    gpu_memory: Annotated[
        float, typer.Option(min=1, help="Memory of one GPU in GiB, of which a tenth stays free.")
    ] = 80.0,
    program: Annotated[Literal["sft", "grpo"], typer.Option(help="What is trained.")] = "sft",
    rows: Annotated[int, typer.Option(min=1, help="Rows that go through the model at once on each GPU.")] = 1,
    passes: Annotated[int, typer.Option(min=1, help="Passes per step on each GPU (accumulation).")] = 1,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of a row, images included.")] = 8192,
    max_tokens: Annotated[int, typer.Option(min=1, help="GRPO: tokens of a row that are generated.")] = 4096,
    kl: Annotated[bool, typer.Option("--kl", help="GRPO: with a reference model (beta above 0).")] = False,
) -> None:
    """Print the memory of each GPU and the time of a step, with whole weights (DDP) and sharded ones (FSDP).

    Weights, gradients, optimiser and cache are exact; activations and time are
    estimates. All weights are trained, in float32, activations checkpointed.
    """
    from darkroom.train.models.planning import GIB, RESERVED, Load, memory, shape_of, step_seconds
    from darkroom.train.runs.command_line import guarded

    is_grpo = program == "grpo"
    load = Load(gpus, rows, tokens, passes, max_tokens if is_grpo else 0, is_grpo and kl)
    with guarded():
        shape = shape_of(model)
    print_line(f"{shape.name}: {shape.n_parameters / 1e9:.2f} billion parameters; {program} on {gpus} GPU(s)")
    for name, sharded in (("ddp", False), ("fsdp", True)):
        parts = memory(shape, load, sharded=sharded)
        total, room = sum(parts.values()) / GIB, gpu_memory * (1 - RESERVED)
        trained, generated = step_seconds(shape, load, sharded=sharded and gpus > 1)
        words = ", ".join(f"{part} {size / GIB:.1f}" for part, size in parts.items() if size)
        fits = "fits" if total <= room else f"DOES NOT FIT into {room:.0f}"
        print_line(f"train/launch/{name}.yaml: {total:.1f} GiB per GPU, {fits} ({words})")
        print_line(
            f"  a step on H100s: at least {trained:.0f} s of training"
            + (f" and {generated:.0f} s of generation (with vLLM several times less)" if is_grpo else "")
        )
