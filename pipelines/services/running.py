"""Runs the service until it is stopped."""

from collections.abc import Callable, Sequence
from pathlib import Path

from mcp.server.stdio import stdio_server

from darkroom.pipelines.services.http_api import service
from darkroom.pipelines.services.listening import listen
from darkroom.pipelines.services.mcp_server import sandbox_server
from darkroom.pipelines.services.sessions import OpenRequest, Sessions


def over_http(
    sessions: Sessions,
    host: str,
    port: int,
    token: str,
    *,
    most_mb: int,
    compression: int,
    say: Callable[[str], None],
) -> None:
    """Serves MCP and JSON until SIGTERM or Ctrl-C. Raises ``UserError`` where the port is taken, ``SandboxError``
    where this machine cannot run the sandbox."""
    with sessions.pool.group():  # a machine that cannot protect itself must not say that it serves
        pass
    app = service(sessions, host=host, token=token, most_mb=most_mb, compression=compression)
    keys = "with a token" if token else "no token"
    listen(app, host, port, lambda at: say(f"MCP {at}/mcp, HTTP {at}/docs, {keys}; Ctrl-C stops it"))


async def over_stdio(sessions: Sessions, images: Sequence[Path], protocol: str, *, compression: int) -> None:
    """One client over standard input and output, with a session over ``images``."""
    task = OpenRequest.model_validate({"protocol": protocol, "images": [path.read_bytes() for path in images]})
    session = await sessions.open(task)
    server = sandbox_server(sessions, compression=compression, session=session)
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await sessions.registry.close(session)
