"""``darkroom sandbox serve``: the sandbox for other programs."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from click import Choice

from darkroom.pipelines.models.protocols import PROTOCOLS
from darkroom.pipelines.services import TOKEN_VARIABLE, token_for
from darkroom.sandbox import Limits, SandboxPool
from darkroom.sandbox.errors import TIER_VARIABLE, Tier, require_extra

Host = Annotated[str, typer.Option(help=f"0.0.0.0 admits other machines; then {TOKEN_VARIABLE} is needed.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]


def serve_sandbox(
    host: Host = "127.0.0.1",
    port: Port = 8765,
    sessions: Annotated[int, typer.Option(min=1, help="Maximum of open sessions; beyond, clients get 429.")] = 256,
    waiting: Annotated[int, typer.Option(min=1, help="Calls that may wait for a CPU; beyond, clients get 429.")] = 1024,
    idle: Annotated[float, typer.Option(min=1, help="Seconds without a call after which a session ends.")] = 600.0,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit of a program.")] = Limits.seconds,
    memory_mb: Annotated[int, typer.Option(min=64, help="Memory limit of a session.")] = Limits.memory_mb,
    max_request_mb: Annotated[int, typer.Option(min=1, help="Largest request.")] = 64,
    compression: Annotated[int, typer.Option(min=0, max=9, help="Of PNGs: 0 is fastest, for a near client.")] = 0,
    tier: Annotated[Tier | None, typer.Option(help=f"Default: {TIER_VARIABLE}, else full.")] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="MCP over standard input and output, one client.")] = False,
    image: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="With --stdio: an image of the session; repeat for more."),
    ] = None,
    protocol: Annotated[
        str, typer.Option(click_type=Choice(list(PROTOCOLS)), help="With --stdio: how a client calls tools.")
    ] = "tool_call",
) -> None:
    """Serve the sandbox over MCP and plain HTTP, for trainers, agents and evaluators that are not Darkroom.

    A client opens a session with a task's images and gets tools: run_code, and with --protocol tool_call crop_image and
    image_zoom_in; with a video select_frames. Images come back as PNGs with the very pixels. Stop it with Ctrl-C.

    `darkroom sandbox serve`

    `DARKROOM_SERVICE_TOKEN=… darkroom sandbox serve --host 0.0.0.0 --sessions 1000`

    `darkroom sandbox serve --stdio --image photo.jpg`
    """
    token = "" if stdio else token_for(host)
    require_packages()
    from darkroom.pipelines.services.http_api import over_http, over_stdio
    from darkroom.pipelines.services.sessions import Sessions

    with SandboxPool(limits=Limits(seconds=seconds, memory_mb=memory_mb), tier=tier) as pool:
        held = Sessions(pool, most_open=sessions, most_waiting=waiting, idle_seconds=idle)
        with suppress(KeyboardInterrupt):
            if stdio:
                asyncio.run(over_stdio(held, image or [], protocol, compression=compression))
            else:
                over_http(held, host, port, token, most_mb=max_request_mb, compression=compression)


def require_packages() -> None:
    """Raises ``UserError`` if the packages of the services are not installed."""
    for name in ("fastapi", "mcp", "uvicorn", "prometheus_client"):
        require_extra(name, "serve", "the service")
