"""`darkroom serve`: a model server that the toolkit starts, watches and stops.

Only the settings to export go to stdout, so that `eval "$(darkroom serve MODEL --detach)"` works; all else is stderr.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from pipelines.serving import launch
from pipelines.serving.engines import Engine, TransformersEngine, VllmEngine, refuse_own_flags
from pipelines.serving.environments import vllm_environment
from pipelines.serving.faults import ServingFault
from pipelines.serving.health import Progress, ending, state, wait_until_ready
from pipelines.serving.models import ServedModel
from pipelines.serving.servers import Server, Servers

if TYPE_CHECKING:
    from pipelines.workspace import Workspace

LINE_SECONDS = 15.0
"""How often progress is said where there is no terminal to write it over."""


def serve(
    model: Annotated[
        str | None, typer.Argument(help="A name on the Hugging Face hub, or a folder with a checkpoint.")
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="Passed on to the engine as they are.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="vllm (an NVIDIA GPU) or transformers (small models, also on the CPU).")
    ] = "vllm",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Default: a free one.")] = None,
    host: Annotated[
        str, typer.Option(help="0.0.0.0 lets other machines in, and asks none of them for a key.")
    ] = "127.0.0.1",
    context: Annotated[
        str, typer.Option(help="vllm: longest conversation in tokens, or auto: what model and memory allow.")
    ] = "auto",
    images: Annotated[int, typer.Option(min=1, help="vllm: most images in one conversation.")] = 32,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready; it runs until --stop.")] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the servers; exits with 1 unless MODEL (or every one) is ready.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop MODEL's server, or all on this machine.")] = False,
) -> None:
    """Serve a model over HTTP, wait until it answers, and print the settings that make it the policy.

    Without --detach the server runs until Ctrl-C. It lives on if this command is killed: --status shows it, --stop
    ends it, and another start of the same model finds it. vLLM is installed on first use, into an environment of its
    own below DARKROOM_HOME. Examples:

    `darkroom serve Qwen/Qwen3-VL-8B-Instruct`

    `darkroom serve Qwen/Qwen2.5-VL-72B-Instruct --detach -- --tensor-parallel-size 4`

    `darkroom serve data/checkpoints/sft --engine transformers -- --trust-remote-code`

    `darkroom serve --status`
    """
    from pipelines.workspace import Workspace

    console = Console(stderr=True)
    with _faults_as_messages(console), Workspace.from_environment() as workspace:
        if status or stop:
            _look_after(console, workspace, model, stop)
        else:
            chosen = _engine(workspace, engine, context, images, tuple(arguments or ()))
            _serve(console, workspace, model, chosen, host, port, detach)


@contextmanager
def _faults_as_messages(console: Console) -> Iterator[None]:
    try:
        yield
    except ServingFault as fault:
        console.print(Text.assemble(("error: ", "bold red"), str(fault)), soft_wrap=True)
        raise typer.Exit(1) from fault


def _engine(workspace: Workspace, name: str, context: str, images: int, arguments: tuple[str, ...]) -> Engine:
    refuse_own_flags(arguments)
    match name:
        case "vllm":
            installed = vllm_environment(workspace.environments / "vllm")
            return VllmEngine(installed, context=context, images=images, arguments=arguments)
        case "transformers":
            return TransformersEngine(arguments=arguments)
        case _:
            raise ServingFault(f"--engine is vllm or transformers; found {name!r}")


def _serve(
    console: Console,
    workspace: Workspace,
    model: str | None,
    engine: Engine,
    host: str,
    port: int | None,
    detach: bool,
) -> None:
    if model is None:
        raise ServingFault("name a MODEL to serve, or ask for --status or --stop; --help shows examples")
    servers = Servers(workspace.home / "servers")
    server, reused = launch.start(servers, ServedModel.parse(model), engine, host=host, port=port)
    said = f"{server.model} is there already" if reused else f"{server.engine} loads {server.model}"
    console.print(f"{said}; log: {server.log}", highlight=False, soft_wrap=True)
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
        launch.stop(servers, server)


def _wait(console: Console, servers: Servers, server: Server) -> None:
    """Until it is ready; prints the settings."""
    with _death_cleaned_up(servers, server), console.status("starting") as shown:
        seconds = wait_until_ready(server, report=_Reporter(console, shown))
    server = launch.pin(servers, server)
    console.print(f"ready after {seconds:.0f} s at {server.root_url}/v1", highlight=False, soft_wrap=True)
    if not server.revision:
        console.print("which revision it loaded is not known here; name it in DARKROOM_POLICY_REVISION")
    for name, value in server.settings.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


@contextmanager
def _death_cleaned_up(servers: Servers, server: Server) -> Iterator[None]:
    """A server that died is forgotten, and what it left behind (workers that hold the GPU) is ended."""
    try:
        yield
    except ServingFault:
        if not server.process.is_running:
            launch.stop(servers, server)
        raise


class _Reporter:
    """Progress written over itself in a terminal, and now and then as a line elsewhere."""

    def __init__(self, console: Console, shown: Status) -> None:
        self._console = console
        self._shown = shown
        self._said = 0.0

    def __call__(self, progress: Progress) -> None:
        text = Text(f"{progress.seconds:.0f} s  {progress.line}", overflow="ellipsis", no_wrap=True)
        if self._console.is_terminal:
            self._shown.update(text)
        elif progress.seconds - self._said >= LINE_SECONDS:
            self._said = progress.seconds
            self._console.print(text)


@contextmanager
def _terminations_as_interrupts() -> Iterator[None]:
    """SIGTERM and a closed terminal stop a server in the foreground, as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(servers: Servers, server: Server) -> None:
    """Shows what is added to the log until the server is stopped. Raises ``ServingFault`` when it ends by itself."""
    with Path(server.log).open(errors="replace") as log:
        log.seek(0, os.SEEK_END)
        while server.process.is_running:
            typer.echo(log.read(), err=True, nl=False)
            time.sleep(0.5)
    with servers.lock():  # who stops it holds the lock until the record is gone
        was_stopped = not launch.is_there(servers, server)
    if not was_stopped:
        with _death_cleaned_up(servers, server):
            raise ServingFault(f"the server of {server.model} has ended. {ending(server)}")


def _look_after(console: Console, workspace: Workspace, model: str | None, stop: bool) -> None:
    servers = Servers(workspace.home / "servers")
    found = servers.all()
    if model is not None:
        name = ServedModel.parse(model).name if Path(model).exists() else model
        found = [server for server in found if server.model == name]
        if not found:
            raise ServingFault(f"no server of {name} was started here; darkroom serve --status shows all")
    if stop:
        mine = [server for server in found if model is not None or server.process.is_local]
        for server in mine:
            was_running = launch.stop(servers, server)
            console.print(f"{server.model}: {'stopped' if was_running else 'was gone already'}", highlight=False)
    else:
        _show(found)


def _show(found: list[Server]) -> None:
    states = [state(server) for server in found]
    table = Table("model", "engine", "state", "address", "pid", "started", "log", box=None, padding=(0, 2, 0, 0))
    for server, now in zip(found, states, strict=True):
        pid = str(server.process.pid)
        table.add_row(server.model, server.engine, now, f"{server.root_url}/v1", pid, server.started, server.log)
    wide = 10_000  # a table that is cut off or folded cannot be copied from
    Console(width=wide).print(table if found else "no servers", highlight=False)
    if any(now != "ready" for now in states):
        raise typer.Exit(1)
