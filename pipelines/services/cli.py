"""``darkroom sandbox serve``: the sandbox for other programs."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from sandbox import Limits, SandboxPool
from sandbox.errors import SandboxError
from sandbox.protections import TIER_VARIABLE
from sandbox.terminal import SafeConsole

TOKEN_VARIABLE = "DARKROOM_SERVICE_TOKEN"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def serve_sandbox(
    host: Annotated[
        str, typer.Option(help=f"0.0.0.0 admits other machines; then {TOKEN_VARIABLE} is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    sessions: Annotated[int, typer.Option(min=1, help="Most sessions open at a time; beyond, clients get 429.")] = 256,
    waiting: Annotated[
        int, typer.Option(min=1, help="Most calls that wait for a CPU; beyond, clients get 429.")
    ] = 1024,
    idle: Annotated[float, typer.Option(min=1, help="Seconds without a call after which a session ends.")] = 600.0,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit of a program.")] = Limits.seconds,
    memory_mb: Annotated[int, typer.Option(min=64, help="Memory limit of a session.")] = Limits.memory_mb,
    most_mb: Annotated[int, typer.Option(min=1, help="Largest request.")] = 64,
    compression: Annotated[
        int, typer.Option(min=0, max=9, help="Of PNGs: 0 is fastest, for a client that is near.")
    ] = 0,
    tier: Annotated[
        str | None, typer.Option(help=f"full or lite; by default what {TIER_VARIABLE} says, else full.")
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="MCP over standard input and output, one client.")] = False,
    image: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="With --stdio: an image of the session; repeat for more."),
    ] = None,
    protocol: Annotated[str, typer.Option(help="With --stdio: thyme, pyvision or tool_call (crops).")] = "tool_call",
) -> None:
    """Serve the sandbox over MCP and plain HTTP, for trainers, agents and evaluators that are not Darkroom.

    A client opens a session with a task's images and gets tools: run_code, and with --protocol tool_call crop_image and
    image_zoom_in; with a video select_frames. Images come back as PNGs with the very pixels. Stop it with Ctrl-C.

    `darkroom sandbox serve`

    `DARKROOM_SERVICE_TOKEN=… darkroom sandbox serve --host 0.0.0.0 --sessions 1000`

    `darkroom sandbox serve --stdio --image photo.jpg`
    """
    console = SafeConsole(stderr=True)
    token = os.environ.get(TOKEN_VARIABLE, "")
    if host not in _LOOPBACK and not token and not stdio:
        _fail(console, f"--host {host} admits other machines: set {TOKEN_VARIABLE} to a secret of your own")
    try:
        import fastapi  # noqa: F401
        import mcp  # noqa: F401
    except ImportError:
        _fail(console, "the service needs an extra: pip install 'darkroom-toolkit[serve]'")
    from pipelines.services.running import Service

    limits = Limits(seconds=seconds, memory_mb=memory_mb)
    try:
        with SandboxPool(limits=limits, tier=tier) as pool:
            service = Service(pool, sessions, waiting, idle, most_mb, compression)
            with suppress(KeyboardInterrupt):
                if stdio:
                    asyncio.run(service.over_stdio(image or [], protocol))
                else:
                    service.over_http(host, port, token, say=lambda line: console.print(line, markup=False))
    except (SandboxError, OSError) as error:
        _fail(console, str(error))


def _fail(console: SafeConsole, message: str) -> None:
    console.print(message, style="red", markup=False)
    raise typer.Exit(1)
