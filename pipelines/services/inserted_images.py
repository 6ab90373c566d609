"""Images in JSON answers: base64 that is put into a body when all else of it is written.

An encoder of JSON searches every character for what to escape, of which base64 has none, and MCP's library validates
and copies an answer several times before it encodes it. So a handler writes a name where the image belongs, 128 random
bits that no text holds by chance or on purpose, and the body is sent with the image in the name's place.
"""

import re
import secrets
from contextvars import ContextVar

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NAME = re.compile(rb"(\+\+[0-9a-f]{32}\+\+)")
"""One for all: to compile a pattern of an answer's own names takes longer than to encode its JSON."""
_named: ContextVar[dict[bytes, bytes]] = ContextVar("named")
"""Images of the request's answer by their names."""


def in_json(image: bytes) -> str:
    """What to write where ``image`` (base64) belongs in the answer: its name; itself where no request is answered."""
    images = _named.get(None)
    if images is None:
        return image.decode()
    name = f"++{secrets.token_hex(16)}++"
    images[name.encode()] = image
    return name


class InsertedImages:
    """Puts the images into the answers of ``app``, each of which is sent in one piece where it has images."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        images: dict[bytes, bytes] = {}
        _named.set(images)
        start: Message = {}

        async def insert(message: Message) -> None:
            nonlocal start
            if not images:
                await send(message)
            elif message["type"] == "http.response.start":
                start = message  # its length is known when the images are in the body
            else:
                pieces = _pieces(message["body"], images)
                MutableHeaders(raw=start["headers"])["content-length"] = str(sum(map(len, pieces)))
                await send(start)
                for piece in pieces[:-1]:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({**message, "body": pieces[-1]})

        await self._app(scope, receive, insert)


def _pieces(body: bytes, images: dict[bytes, bytes]) -> list[bytes]:
    return [images.get(piece, piece) for piece in _NAME.split(body)]
