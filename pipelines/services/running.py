"""Runs the service until it is stopped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp.server.stdio import stdio_server

from pipelines.services.http_api import service
from pipelines.services.listening import listen
from pipelines.services.mcp_server import sandbox_server
from pipelines.services.sessions import OpenRequest, Sessions
from pipelines.storage.stage import code_version
from sandbox import SandboxPool


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
        """Serves MCP and JSON until SIGTERM or Ctrl-C. Raises ``UserError`` where the port is taken, ``SandboxError``
        where this machine cannot run the sandbox."""
        with self.pool.group():  # a machine that cannot protect itself must not say that it serves
            pass
        app = service(
            self._sessions(),
            version=code_version(),
            host=host,
            token=token,
            most_mb=self.most_mb,
            compression=self.compression,
        )
        keys = "with a token" if token else "no token"
        listen(app, host, port, lambda at: say(f"MCP {at}/mcp, HTTP {at}/docs, {keys}; Ctrl-C stops it"))

    async def over_stdio(self, images: Sequence[Path], protocol: str) -> None:
        """One client over standard input and output, with a session over ``images``."""
        sessions = self._sessions()
        task = OpenRequest.model_validate({"protocol": protocol, "images": [path.read_bytes() for path in images]})
        session = await sessions.open(task)
        server = sandbox_server(sessions, version=code_version(), compression=self.compression, session=session)
        try:
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        finally:
            await sessions.registry.close(session)

    def _sessions(self) -> Sessions:
        return Sessions(
            self.pool, most_open=self.most_sessions, most_waiting=self.most_waiting, idle_seconds=self.idle_seconds
        )
