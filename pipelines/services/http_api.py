"""The service's HTTP application: sessions as JSON with an OpenAPI page (``/docs``), MCP, metrics."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel
from starlette.routing import Route
from starlette.types import ASGIApp

from darkroom.pipelines.records import Edit, to_row
from darkroom.pipelines.services import LOOPBACK
from darkroom.pipelines.services.files import ObservationPart
from darkroom.pipelines.services.listening import guarded, listen, speak_json
from darkroom.pipelines.services.mcp_server import sandbox_server
from darkroom.pipelines.services.sessions import OpenRequest, Sessions
from darkroom.pipelines.services.tools import TOOLS, SandboxTool, description
from darkroom.pipelines.storage.stage_runs import code_version
from darkroom.sandbox.metrics import PoolCollector


class SessionOpened(BaseModel):
    """A session."""

    session: str
    tools: list[str]
    mcp: str


class ToolResult(BaseModel):
    """Result of a program. ``images`` are PNGs in base64; ``parts`` is the observation as the protocol writes it, tag
    included. ``broken``: the session is gone with its state."""

    status: str
    text: str
    error: str | None = None
    images: list[str]
    parts: list[ObservationPart]
    edits: tuple[Edit, ...]
    seconds: float
    broken: bool
    n_over_limit: int


class Health(BaseModel):
    """Answer of a service that runs."""

    version: str
    sessions: int
    most_sessions: int


def service(
    sessions: Sessions, *, host: str = LOOPBACK[0], token: str = "", most_mb: int = 64, compression: int = 0
) -> ASGIApp:
    """The application, ``guarded``. ``most_mb``: of a request; ``compression``: of the images' PNG."""
    server = sandbox_server(sessions, compression=compression)
    mcp = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=most_mb << 20)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with sessions.registry.running(), mcp.run():
            yield

    app = FastAPI(title="Darkroom: the sandbox", version=code_version(), lifespan=lifespan)
    speak_json(app)
    _routes(app, sessions, compression)
    for path in ("/mcp", "/sessions/{session}/mcp"):  # no GET: on its stream nothing would ever come
        app.router.routes.append(Route(path, StreamableHTTPASGIApp(mcp), methods=["POST"]))
    return guarded(app, host=host, token=token, most_mb=most_mb, with_images=("/sessions", "/mcp"))


def _routes(app: FastAPI, sessions: Sessions, compression: int) -> None:
    registry = CollectorRegistry()
    registry.register(PoolCollector(sessions.pool))

    @app.get("/health")
    async def health() -> Health:
        return Health(version=app.version, sessions=len(sessions.registry), most_sessions=sessions.registry.most_open)

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        return Response(await asyncio.to_thread(generate_latest, registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @app.post("/sessions", status_code=201)
    async def open_session(task: OpenRequest) -> SessionOpened:
        """Open a session over a task's images and videos."""
        name = await sessions.open(task)
        return SessionOpened(
            session=name, tools=[tool.tool for tool in sessions.registry.get(name).tools], mcp=f"/sessions/{name}/mcp"
        )

    @app.delete("/sessions/{session}", status_code=204)
    async def close_session(session: str) -> None:
        """End a session."""
        sessions.registry.get(session)
        await sessions.registry.close(session)

    for tool in TOOLS:
        call = _call(sessions, tool, compression)
        app.post(f"/sessions/{{session}}/tools/{tool.tool}", summary=description(tool), response_model=ToolResult)(call)

    @app.post("/sessions/{session}/tools/{tool}", include_in_schema=False)
    async def unknown_tool(session: str, tool: str) -> None:
        async with sessions.call(session, tool, {}):
            pass


def _call(sessions: Sessions, tool: type[SandboxTool], compression: int) -> Callable[..., Any]:
    async def call(session: str, arguments: Any, request: Request) -> Response:
        outcome = await request.scope["sent"].enter_async_context(sessions.call(session, tool.tool, arguments))
        images = request.scope["images"].add(outcome.images, compression=compression)
        fields = {**to_row(outcome.observation), "images": images, "parts": outcome.parts}
        fields |= {name: getattr(outcome.shown, name) for name in ("seconds", "broken", "n_over_limit")}
        result = ToolResult.model_validate(fields)
        return Response(result.model_dump_json(exclude_none=True), media_type="application/json")

    call.__name__ = tool.tool
    call.__annotations__["arguments"] = tool
    return call


def over_http(sessions: Sessions, host: str, port: int, token: str, *, most_mb: int, compression: int) -> None:
    """Serve MCP and JSON until SIGTERM or Ctrl-C. Raises ``UserError`` (port taken) or ``SandboxError``."""
    with sessions.pool.group():  # a machine that cannot protect itself must not say that it serves
        pass
    app = service(sessions, host=host, token=token, most_mb=most_mb, compression=compression)
    keys = "with a token" if token else "no token"
    listen(app, host, port, lambda at: f"MCP {at}/mcp, HTTP {at}/docs, {keys}; Ctrl-C stops it")


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
