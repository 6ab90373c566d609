"""Images come into an answer where the handler put their names, and its length is that of the whole."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from darkroom.pipelines.services.inserted_images import InsertedImages, in_json

pytestmark = pytest.mark.anyio
IMAGES = [b"iVBORw0KGgo=", b"A" * 100_000]


def two(_):
    return JSONResponse({"images": [in_json(image) for image in IMAGES], "again": in_json(IMAGES[0])})


def none(_):
    return JSONResponse({"images": []}, 404)


def stream(_):
    return StreamingResponse(iter([b"a", b"b"]))


@pytest.fixture
async def client():
    app = InsertedImages(Starlette(routes=[Route(f"/{route.__name__}", route) for route in (two, none, stream)]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        yield http


async def test_images_stand_where_their_names_were(client):
    answer = await client.get("/two")
    assert answer.json() == {"images": [image.decode() for image in IMAGES], "again": IMAGES[0].decode()}
    assert answer.headers["content-length"] == str(len(answer.content))


async def test_other_answers_are_sent_as_they_are(client):
    answers = [await client.get(path) for path in ("/none", "/stream", "/missing")]
    assert [(answer.status_code, answer.content) for answer in answers] == [
        (404, b'{"images":[]}'),
        (200, b"ab"),
        (404, b"Not Found"),
    ]


async def test_without_a_request_an_image_is_written_itself():
    assert in_json(IMAGES[0]) == IMAGES[0].decode()
