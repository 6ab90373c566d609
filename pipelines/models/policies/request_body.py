"""The body of a chat completion's request: JSON in fragments, of which the images are those of the cache.

    [b'{"model":"qwen",…,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"',
     b'data:image/png;base64,iVBORw0…', b'"}},{"type":"text","text":"How many?"}]}]}']

An image of a few hundred kilobytes would otherwise be escaped and copied for each of the calls that send it, while all
other calls wait.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from darkroom.pipelines.models.messages import ImagePart, Message, Part, Text

_PIECE_BYTES = 2**17
"""What the socket does not take at once is copied, so it gets pieces and may say when to go on."""
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def body_of(fields: Mapping[str, Any], messages: Sequence[Message], urls: Mapping[str, bytes]) -> tuple[bytes, ...]:
    """``fields`` and ``messages``; ``urls`` are those of the messages' images by sha256, without quotes in them.

    Raises ``ValueError`` for texts that are no UTF-8 and numbers that are not finite.
    """
    text: list[str] = [_json.encode(fields)[:-1], ',"messages":[' if fields else '"messages":[']
    fragments: list[bytes] = []
    for number, message in enumerate(messages):
        text.append("," if number else "")
        if message.role == "user":
            text.append('{"role":"user","content":[')
            for place, part in enumerate(message.parts):
                text.append("," if place else "")
                if isinstance(part, ImagePart):
                    text.append('{"type":"image_url","image_url":{"url":"')
                    fragments += ["".join(text).encode(), urls[part.image.sha256]]
                    text = ['"}}']
                else:
                    text.append(_json.encode({"type": "text", "text": part.text}))
            text.append("]}")
        else:
            text.append(_json.encode({"role": message.role, "content": _text(message.parts)}))
    return (*fragments, ("".join(text) + "]}").encode())


def _text(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


class Fragments(aiohttp.Payload):
    """Sent one after the other with their length in all; may be sent again."""

    def __init__(self, fragments: Sequence[bytes]) -> None:
        super().__init__(fragments, content_type="application/json")
        self._size = sum(map(len, fragments))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for fragment in self._value:
            if len(fragment) <= _PIECE_BYTES:
                await writer.write(fragment)
            else:
                view = memoryview(fragment)
                for first in range(0, len(fragment), _PIECE_BYTES):
                    await writer.write(view[first : first + _PIECE_BYTES])
