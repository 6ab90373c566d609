"""The sandbox over MCP: tools on a session, images as image content.

The newest version of MCP has no sessions of its own, so a sandbox session is a thing with a name. At ``/mcp`` a client
opens one with the tool ``open_session`` and names it in every call. At ``/sessions/NAME/mcp``, and over stdio, the
session is known: the tools have no other arguments than a model should see.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool as ToolDescription,
)
from pydantic import ValidationError

from darkroom.pipelines.models.protocols import PROTOCOLS, Protocol
from darkroom.pipelines.services import ServiceError, invalid
from darkroom.pipelines.services.files import encoded
from darkroom.pipelines.services.sessions import OpenRequest, Sessions, ToolOutcome
from darkroom.pipelines.services.tools import TOOLS, SandboxTool, description, no_tool
from darkroom.pipelines.storage.stage_runs import code_version
from darkroom.sandbox.errors import raised_as

OPEN, CLOSE = "open_session", "close_session"
_SESSION = {"type": "string", "description": "The name that open_session returned."}
INSTRUCTIONS = (
    "A sandbox for Python on images. Call open_session with the task's images, then the other tools with its name. "
    "Variables stay from call to call. Call close_session in the end."
)


def sandbox_server(sessions: Sessions, *, compression: int = 0, session: str | None = None) -> Server[Any]:
    """The server of ``sessions``. ``session``: of every call that names none; ``compression``: of the images' PNG."""

    async def list_tools(
        context: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if (name := _session_of_path(context) or session) is not None:
            # a list of tools cannot say that there is no such session
            with raised_as(lambda error: MCPError(INVALID_PARAMS, f"{error.kind}: {error}", error.body), ServiceError):
                return ListToolsResult(tools=[_described(tool) for tool in sessions.registry.get(name).tools])
        return ListToolsResult(tools=[_OPEN, *(_described(tool, with_session=True) for tool in TOOLS), _CLOSE])

    async def call_tool(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        name, arguments = _session_of_path(context) or session, dict(params.arguments or {})
        try:
            if name is None and params.name not in _schemas:
                raise no_tool(params.name, _schemas)
            if name is None and params.name == OPEN:
                return await _opened(sessions, arguments)
            if name is None:
                name = str(arguments.pop("session", ""))
                if params.name == CLOSE:
                    sessions.registry.get(name)
                    await sessions.registry.close(name)
                    return CallToolResult(content=[TextContent(text="closed")])
            protocol = PROTOCOLS[sessions.registry.get(name).task.protocol]
            call = sessions.call(name, params.name, arguments)
            if context.request is None:  # over standard input
                async with call as outcome:
                    return _shown(outcome, encoded(outcome.images, compression=compression), protocol)
            scope = context.request.scope
            outcome = await scope["sent"].enter_async_context(call)
            return _shown(outcome, scope["images"].add(outcome.images, compression=compression), protocol)
        except ServiceError as error:
            told = TextContent(text=f"{error.kind}: {error}")
            return CallToolResult(content=[told], structured_content=error.body, is_error=True)

    return Server(
        "darkroom-sandbox",
        version=code_version(),
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_schemas.get,  # else tools are listed before every call
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _opened(sessions: Sessions, arguments: dict[str, Any]) -> CallToolResult:
    with raised_as(invalid, ValidationError):
        task = OpenRequest.model_validate(arguments)
    name = await sessions.open(task)
    facts = {"session": name, "tools": [tool.tool for tool in sessions.registry.get(name).tools]}
    return CallToolResult(content=[TextContent(text=json.dumps(facts))], structured_content=facts)


def _shown(outcome: ToolOutcome, images: Sequence[str], protocol: Protocol) -> CallToolResult:
    tag = re.compile(rf"\A<{protocol.marker}>\n?|</{protocol.marker}>\Z")  # the client's to write; code prints none
    content: list[ContentBlock] = []
    for part in outcome.parts:
        if part.image is not None:
            content.append(ImageContent(data=images[part.image], mime_type="image/png"))
        elif text := tag.sub("", part.text or ""):
            content.append(TextContent(text=text))
    shown = outcome.shown
    facts = {"status": outcome.observation.status, "seconds": round(shown.seconds, 4), "broken": shown.broken}
    return CallToolResult(content=content or [TextContent(text="")], structured_content=facts)


def _session_of_path(context: ServerRequestContext[Any, Any]) -> str | None:
    request = context.request
    return request.path_params.get("session") if request is not None else None


@cache
def _described(tool: type[SandboxTool], *, with_session: bool = False) -> ToolDescription:
    schema = tool.model_json_schema()
    schema.pop("description", None)
    if with_session:
        schema["properties"] = {"session": _SESSION, **schema["properties"]}
        schema["required"] = ["session", *schema.get("required", ())]
    return ToolDescription(name=tool.tool, description=description(tool), input_schema=schema)


_OPEN = ToolDescription(
    name=OPEN,
    description="Open a session of the sandbox over a task's images and videos; returns its name and its tools.",
    input_schema=OpenRequest.model_json_schema(),
)
_CLOSE = ToolDescription(
    name=CLOSE,
    description="End a session; its variables and files are gone.",
    input_schema={"type": "object", "properties": {"session": _SESSION}, "required": ["session"]},
)
_schemas = {one.name: one.input_schema for one in (_OPEN, *map(_described, TOOLS), _CLOSE)}
