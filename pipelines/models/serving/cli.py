"""`darkroom serve`: start, watch and stop a model server.

Only the settings to export go to stdout, so that `eval "$(darkroom serve MODEL --detach)"` works; the rest is stderr.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from darkroom.pipelines.models.serving import lifecycle
from darkroom.pipelines.models.serving.engines import (
    Device,
    Engine,
    ServedModel,
    TransformersEngine,
    VllmEngine,
    refuse_own_flags,
)
from darkroom.pipelines.models.serving.lifecycle import Progress, ending, state, wait_until_ready
from darkroom.pipelines.models.serving.processes import ServingError
from darkroom.pipelines.models.serving.servers import ModelServer, ServerRegistry
from darkroom.pipelines.models.serving.vllm_environments import vllm_cpu_environment, vllm_environment
from darkroom.sandbox.terminal import SafeConsole

if TYPE_CHECKING:
    from darkroom.pipelines.storage.workspace import Workspace

LINE_SECONDS = 15.0
"""Between two lines of progress, where there is no terminal."""


def serve(
    model: Annotated[
        str | None, typer.Argument(help="A name on the Hugging Face hub, or a folder with a checkpoint.")
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="Passed on to the engine unchanged.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="vllm, or transformers (small models, one request at a time; needs no installation).")
    ] = "vllm",
    device: Annotated[Device, typer.Option(help="vllm: an NVIDIA GPU, or for small models this CPU.")] = "gpu",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: a free one.")] = None,
    host: Annotated[str, typer.Option(help="0.0.0.0 admits other machines, without a key.")] = "127.0.0.1",
    context: Annotated[
        str, typer.Option(help="vllm: maximum conversation length in tokens; auto: as model and memory allow.")
    ] = "auto",
    images: Annotated[int, typer.Option(min=1, help="vllm: maximum number of images in one conversation.")] = 32,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready; it runs until --stop.")] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the servers; exits with 1 unless MODEL (or every one) is ready.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop MODEL's server, or all on this machine.")] = False,
) -> None:
    """Serve a model over HTTP, wait until it is ready, and print the settings that make it the policy.

    Without --detach the server runs until Ctrl-C. It survives if this command is killed: --status shows it, --stop
    ends it, and another start of the same model reuses it. vLLM is installed on first use, into its own environment
    below DARKROOM_HOME. Examples:

    `darkroom serve Qwen/Qwen3-VL-8B-Instruct`

    `darkroom serve Qwen/Qwen2.5-VL-72B-Instruct --detach -- --tensor-parallel-size 4`

    `darkroom serve data/checkpoints/sft --device cpu --context 4096`

    `darkroom serve data/checkpoints/sft --engine transformers -- --trust-remote-code`

    `darkroom serve --status`
    """
    from darkroom.pipelines.storage.workspace import Workspace

    console = SafeConsole(stderr=True)
    with Workspace.from_environment() as workspace:
        if status or stop:
            _look_after(console, workspace, model, stop)
        else:
            refuse_own_flags(tuple(arguments or ()))
            chosen = _engine(workspace, engine, device, context, images, tuple(arguments or ()))
            _serve(console, workspace, model, chosen, host, port, detach)


def _engine(
    workspace: Workspace, name: str, device: Device, context: str, images: int, arguments: tuple[str, ...]
) -> Engine:
    environments = workspace.environments
    match name, device:
        case "vllm", "gpu":
            return VllmEngine(vllm_environment(environments / "vllm"), context, images, arguments)
        case "vllm", "cpu":
            installed = vllm_cpu_environment(environments / "vllm-cpu")
            return VllmEngine(installed, context, images, arguments, device="cpu")
        case "transformers", "gpu":
            return TransformersEngine(arguments=arguments)
        case "transformers", "cpu":
            raise ServingError("--device is for vllm; transformers takes a GPU where there is one, else the CPU")
        case _:
            raise ServingError(f"--engine is vllm or transformers; found {name!r}")


def _serve(
    console: Console, workspace: Workspace, model: str | None, engine: Engine, host: str, port: int | None, detach: bool
) -> None:
    if model is None:
        raise ServingError("expected a MODEL to serve, --status or --stop; --help shows examples")
    servers = ServerRegistry(workspace.local / "servers")
    server, reused = lifecycle.start(servers, ServedModel.parse(model), engine, host=host, port=port)
    action = f"{server.model} is already being served" if reused else f"{server.engine} loads {server.model}"
    console.print(f"{action}; log: {server.log}", highlight=False, soft_wrap=True)
    if detach or reused:
        _wait(console, servers, server)
        return
    try:
        with _terminations_as_interrupts():
            _wait(console, servers, server)
            console.print("Ctrl-C stops it; its log follows.")
            _follow(servers, server)
    except KeyboardInterrupt:
        console.print(f"stopping {server.model}", highlight=False)
        lifecycle.stop(servers, server)


def _wait(console: Console, servers: ServerRegistry, server: ModelServer) -> None:
    """Waits until it is ready and prints the settings."""
    with _death_cleaned_up(servers, server), console.status("starting") as progress_line:
        seconds = wait_until_ready(server, report=_progress_reporter(console, progress_line))
    server = lifecycle.pin(servers, server)
    console.print(f"ready after {seconds:.0f} s at {server.root_url}/v1", highlight=False, soft_wrap=True)
    if not server.revision:
        console.print("the loaded revision is unknown; set it in DARKROOM_POLICY_REVISION")
    for name, value in server.settings.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


@contextmanager
def _death_cleaned_up(servers: ServerRegistry, server: ModelServer) -> Iterator[None]:
    """Removes a server that died, and ends the workers that it left behind, which may hold the GPU."""
    try:
        yield
    except ServingError:
        if not server.process.is_running:
            lifecycle.stop(servers, server)
        raise


def _progress_reporter(console: Console, progress_line: Status) -> Callable[[Progress], None]:
    """Progress in place in a terminal, elsewhere as a line now and then."""
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


@contextmanager
def _terminations_as_interrupts() -> Iterator[None]:
    """SIGTERM and a closed terminal stop a foreground server, as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(servers: ServerRegistry, server: ModelServer) -> None:
    """Prints new log lines until the server is stopped. Raises ``ServingError`` when it ends by itself."""
    with Path(server.log).open(errors="replace") as log:
        log.seek(0, os.SEEK_END)
        while server.process.is_running:
            typer.echo(log.read(), err=True, nl=False)
            time.sleep(0.5)
    with servers.lock():  # held by `stop` until the record is removed
        was_stopped = not lifecycle.is_recorded(servers, server)
    if not was_stopped:
        with _death_cleaned_up(servers, server):
            raise ServingError(f"the server of {server.model} has ended. {ending(server)}")


def _look_after(console: Console, workspace: Workspace, model: str | None, stop: bool) -> None:
    servers = ServerRegistry(workspace.local / "servers")
    selected = servers.all()
    if model is not None:
        name = ServedModel.parse(model).name if Path(model).exists() else model
        selected = [server for server in selected if server.model == name]
        if not selected:
            raise ServingError(f"no server of {name} was started here; darkroom serve --status shows all")
    if stop and selected:
        for server in selected:
            if model is not None or server.process.is_local:
                was_running = lifecycle.stop(servers, server)
                console.print(f"{server.model}: {'stopped' if was_running else 'was not running'}", highlight=False)
    else:
        _show(selected)


def _show(selected: list[ModelServer]) -> None:
    states = [state(server) for server in selected]
    table = Table("model", "engine", "state", "address", "pid", "started", "log", box=None, padding=(0, 2, 0, 0))
    for server, now in zip(selected, states, strict=True):
        pid = str(server.process.pid)
        table.add_row(server.model, server.engine, now, f"{server.root_url}/v1", pid, server.started, server.log)
    wide = 10_000  # a truncated or folded table cannot be copied from
    SafeConsole(width=wide).print(table if selected else "no servers", highlight=False)
    if any(now != "ready" for now in states):
        raise typer.Exit(1)
