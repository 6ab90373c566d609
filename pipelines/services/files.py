"""Contents of requests and answers: files and texts that clients send, images and observations that are sent to them. A
PNG is written without a filter, by default without compression: for a near client the encoder costs more than the bytes
(800 x 600 pixels take OpenCV 14 ms of CPU time without compression, Pillow 20 and this 2)."""

import asyncio
import binascii
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
import pybase64
from PIL import Image
from pydantic import AfterValidator, BaseModel, BeforeValidator

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.models.protocols import Protocol
from darkroom.pipelines.records import Observation

_RGB = 2
_SMALL = 200_000
"""Pixels that take less time than the way to a thread."""
_TOP = struct.Struct(">IIBBBBB")


def decoded(value: Any) -> bytes:
    """A file that a client sent, as base64 or as a data URL. Raises ``ValueError`` for all else."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError("expected base64 or a data URL")
    payload = value.partition(",")[2] if value.startswith("data:") else value
    try:
        return pybase64.b64decode(payload, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


EncodedFile = Annotated[bytes, BeforeValidator(decoded, json_schema_input_type=str)]


def png(image: Image.Image, *, compression: int = 0) -> bytes:
    """The pixels of an RGB image as a PNG. ``compression``: 0 (none) to 9, zlib's levels."""
    width, height = image.size
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0] = 0  # nothing filtered the row
    rows[:, 1:] = np.frombuffer(image.tobytes(), np.uint8).reshape(height, 3 * width)
    top = _TOP.pack(width, height, 8, _RGB, 0, 0, 0)
    chunks = ((b"IHDR", top), (b"IDAT", zlib.compress(rows.data, compression)), (b"IEND", b""))
    return b"".join((b"\x89PNG\r\n\x1a\n", *(piece for chunk in chunks for piece in _pieces(*chunk))))


async def encoded(images: Sequence[Image.Image], *, compression: int = 0) -> list[str]:
    """PNGs in base64; large ones are made in a thread, so that other clients' calls go on."""
    if sum(image.width * image.height for image in images) > _SMALL:
        return await asyncio.to_thread(_encoded, images, compression)
    return _encoded(images, compression)


def _encoded(images: Sequence[Image.Image], compression: int) -> list[str]:
    return [pybase64.b64encode(png(image, compression=compression)).decode() for image in images]


def _pieces(name: bytes, data: bytes) -> tuple[bytes, ...]:
    return struct.pack(">I", len(data)), name, data, struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"no text: half of a pair of surrogates (character {error.start})") from error
    return text


WholeText = Annotated[str, AfterValidator(_whole)]
"""Text that an answer or a ledger can hold: without half of a pair of surrogates."""


Parts = Sequence[str | int]
"""Texts, and numbers of the observation's images, from 0."""


class ObservationPart(BaseModel):
    """A piece of what a model reads: text, or the number of an image in ``images``, counted from 0."""

    type: Literal["text", "image"]
    text: str | None = None
    image: int | None = None

    @classmethod
    def of(cls, parts: Parts) -> list[Self]:
        return [
            cls(type="text", text=part) if isinstance(part, str) else cls(type="image", image=part) for part in parts
        ]


def numbered(protocol: Protocol, observation: Observation) -> tuple[str | int, ...]:
    """Number the images of an observation as a protocol writes it, tag included."""
    numbers: Iterator[int] = iter(range(len(observation.images)))
    return tuple(part.text if isinstance(part, Text) else next(numbers) for part in protocol.wrap(observation))


def without_marker(parts: Parts, protocol: Protocol) -> list[str | int]:
    """The parts without the tag around them, where that is the client's to write."""
    first, *others = parts
    if isinstance(first, str):
        first = first.removeprefix(f"<{protocol.marker}>").removeprefix("\n")
    *inner, last = [first, *others]
    if isinstance(last, str):
        last = last.removesuffix(f"</{protocol.marker}>")
    return [part for part in (*inner, last) if part != ""]
