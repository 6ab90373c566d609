"""The sandbox over MCP, for a client that opens its sessions and for one whose session is given."""

import base64
import io

import numpy as np
import pytest
from mcp import Client
from PIL import Image

from darkroom.pipelines.services.mcp_server import sandbox_server
from darkroom.pipelines.services.sessions import OpenRequest, Sessions

pytestmark = pytest.mark.anyio
CROP = {"bbox_2d": [0, 0, 0.5, 0.5]}


async def test_a_client_opens_a_session_and_names_it(pool, photo):
    sessions = Sessions(pool)
    async with Client(sandbox_server(sessions)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            "open_session",
            "run_code",
            "crop_image",
            "image_zoom_in",
            "select_frames",
            "close_session",
        ]
        assert tools["run_code"].input_schema["required"] == ["session", "code"]
        opened = await client.call_tool("open_session", {"images": [photo], "protocol": "tool_call"})
        name = opened.structured_content["session"]
        shown = await client.call_tool("crop_image", {"session": name, **CROP})
        assert [part.type for part in shown.content] == ["text", "image", "text"]
        assert shown.content[0].text == "image 2: 160x120 pixels\n"
        whole, crop = (Image.open(io.BytesIO(base64.b64decode(data))) for data in (photo, shown.content[1].data))
        assert np.array_equal(np.asarray(crop), np.asarray(whole)[:120, :160])
        assert not (await client.call_tool("close_session", {"session": name})).is_error
        gone = await client.call_tool("run_code", {"session": name, "code": "1"})
        assert gone.is_error
        assert gone.structured_content["error"]["type"] == "unknown_session"
    assert len(sessions.registry) == 0


async def test_a_given_session_needs_no_name_and_reaches_no_other(pool, photo):
    sessions = Sessions(pool)
    given, other = [await sessions.open(OpenRequest.model_validate({"images": [photo], "seed": n})) for n in range(2)]
    async with sessions.call(other, "run_code", {"code": "secret = 'of the other'"}):
        pass
    async with Client(sandbox_server(sessions, session=given)) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == ["run_code"]
        assert list(listed[0].input_schema["properties"]) == ["code"]
        named = await client.call_tool("run_code", {"session": other, "code": "print(secret)"})
        assert named.structured_content["error"]["type"] == "invalid_request"
        opened = await client.call_tool("open_session", {})
        assert opened.structured_content["error"]["type"] == "unknown_tool"
        shown = await client.call_tool("run_code", {"code": "print(secret)"})
        assert (shown.is_error, shown.structured_content["status"]) == (False, "error")
        assert "NameError" in shown.content[0].text
    for name in (given, other):
        await sessions.registry.close(name)


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("open_session", {"images": ["%"]}, "invalid_request"),
        ("open_session", {"images": ["aGVsbG8="]}, "unreadable_image"),
        ("run_code", {"code": "1"}, "unknown_session"),
        ("run_code", {"session": "x", "code": "1"}, "unknown_session"),
        ("close_session", {}, "unknown_session"),
        ("rm", {"session": 5}, "unknown_tool"),
    ],
)
async def test_a_call_that_cannot_be_served_says_why(pool, tool, arguments, kind):
    async with Client(sandbox_server(Sessions(pool))) as client:
        answer = await client.call_tool(tool, arguments)
        assert answer.is_error
        assert answer.structured_content["error"]["type"] == kind
        assert answer.content[0].text.startswith(f"{kind}: ")
