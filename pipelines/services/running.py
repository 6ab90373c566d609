"""Runs the service until it is stopped."""

import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import uvicorn
from mcp.server.stdio import stdio_server

from pipelines.services.http_api import LOOPBACK, service
from pipelines.services.mcp_server import sandbox_server
from pipelines.services.sessions import OpenRequest, Sessions
from sandbox import SandboxPool

STOP_SECONDS = 15
"""So long calls that run may go on after the signal to stop."""


@dataclass(frozen=True, slots=True)
class Service:
    """The pool and what its clients may use. Starts nothing by itself."""

    pool: SandboxPool
    most_sessions: int
    most_waiting: int
    idle_seconds: float
    most_mb: int
    compression: int

    def over_http(self, host: str, port: int, token: str, *, say: Callable[[str], None]) -> None:
        """Serves MCP and JSON until SIGTERM or Ctrl-C. Raises ``OSError`` where the port is taken, ``SandboxError``
        where this machine cannot run the sandbox."""
        with self.pool.group():  # a machine that cannot protect itself must not say that it serves
            pass
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family) as listening:
            address = f"http://{host if ':' not in host else f'[{host}]'}:{listening.getsockname()[1]}"
            hosts = LOOPBACK if host in LOOPBACK else ("*",)
            app = service(
                self._sessions(),
                version=toolkit_version(),
                token=token,
                hosts=hosts,
                most_mb=self.most_mb,
                compression=self.compression,
            )
            server = uvicorn.Server(
                uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=STOP_SECONDS)
            )
            say(f"MCP {address}/mcp, HTTP {address}/docs, {'with a token' if token else 'no token'}; Ctrl-C stops it")
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # uvicorn raises it again when all is closed
            server.run(sockets=[listening])

    async def over_stdio(self, images: Sequence[Path], protocol: str) -> None:
        """One client over standard input and output, with a session over ``images``."""
        sessions = self._sessions()
        session = await sessions.open(OpenRequest(protocol=protocol, images=[path.read_bytes() for path in images]))  # type: ignore[arg-type]
        server = sandbox_server(sessions, version=toolkit_version(), compression=self.compression, session=session)
        try:
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        finally:
            await sessions.close_all()

    def _sessions(self) -> Sessions:
        return Sessions(
            self.pool, most_open=self.most_sessions, most_waiting=self.most_waiting, idle_seconds=self.idle_seconds
        )


def toolkit_version() -> str:
    """Darkroom's; 0 where it is not installed as a package."""
    try:
        return version("darkroom-toolkit")
    except PackageNotFoundError:
        return "0"
