"""Contents of requests and answers: files and texts that clients send, images and observations that are sent to them. A
PNG is written without a filter, by default without compression: for a near client the encoder costs more than the bytes
(800 x 600 pixels take OpenCV 14 ms of CPU time without compression, Pillow 20 and this 2)."""

import binascii
import re
import secrets
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Annotated, Any, Literal

import numpy as np
import pybase64
from PIL import Image
from pydantic import AfterValidator, BaseModel, BeforeValidator

from darkroom.pipelines.models.messages import Text
from darkroom.pipelines.models.protocols import Protocol
from darkroom.pipelines.records import Observation
from darkroom.sandbox.errors import raised_as

_STRIP = 3 << 18
"""Bytes of pixels that are encoded at once."""
SMALL_PIXELS = 200_000
"""They take less time than the way to a thread."""


def decoded(value: Any) -> bytes:
    """A file that a client sent, as base64 or as a data URL. Raises ``ValueError`` for all else."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError("expected base64 or a data URL")
    payload = value.partition(",")[2] if value.startswith("data:") else value
    with raised_as(lambda error: ValueError(f"not base64: {error}"), binascii.Error):
        return pybase64.b64decode(payload, validate=True)


EncodedFile = Annotated[bytes, BeforeValidator(decoded, json_schema_input_type=str)]


def png(image: Image.Image, *, compression: int = 0) -> Iterator[bytes]:
    """The pixels of an RGB image as a PNG, strip by strip. ``compression``: 0 (none) to 9, zlib's levels."""
    width, height = image.size
    yield b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))  # 2: RGB
    squeezed, n_rows = zlib.compressobj(compression), max(1, _STRIP // (3 * width))
    for top in range(0, height, n_rows):
        strip = image if n_rows >= height else image.crop((0, top, width, min(top + n_rows, height)))
        rows = np.zeros((strip.height, 1 + 3 * width), np.uint8)  # 0 in front: nothing filtered the row
        rows[:, 1:] = np.frombuffer(strip.tobytes(), np.uint8).reshape(strip.height, 3 * width)
        if data := squeezed.compress(rows.data):
            yield _chunk(b"IDAT", data)
    yield _chunk(b"IDAT", squeezed.flush()) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))


def _base64(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        whole = len(rest + piece) // 3 * 3 - len(rest)
        yield pybase64.b64encode(rest + piece[:whole])
        rest = piece[whole:]
    yield pybase64.b64encode(rest)


def encoded(images: Sequence[Image.Image], *, compression: int = 0) -> list[str]:
    """PNGs in base64."""
    return [b"".join(_base64(png(image, compression=compression))).decode() for image in images]


class AnswerImages(list[tuple[Image.Image, int]]):
    """Images of a JSON answer, which are encoded as it is sent: none is held as a whole PNG, nor copied with the text
    around it. Marks that no client can guess stand for them until then."""

    def __init__(self) -> None:
        super().__init__()
        self._mark = secrets.token_hex(16)

    def add(self, images: Sequence[Image.Image], *, compression: int) -> list[str]:
        """Return the marks, to be written where the base64 of a PNG belongs."""
        self += [(image, compression) for image in images]
        return [f"{self._mark}:{len(self) - n};" for n in range(len(images), 0, -1)]

    def fill(self, body: bytes) -> Iterator[bytes]:
        text, *others = re.split(rb"%b:(\d+);" % self._mark.encode(), body)
        yield text
        for number, text in zip(others[::2], others[1::2], strict=True):
            image, compression = self[int(number)]
            yield from filter(None, _base64(png(image, compression=compression)))
            yield text


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"no text: half of a pair of surrogates (character {error.start})") from error
    return text


WholeText = Annotated[str, AfterValidator(_whole)]
"""Text that an answer or a ledger can hold: without half of a pair of surrogates."""


class ObservationPart(BaseModel):
    """A piece of what a model reads: text, or the number of an image in ``images``, counted from 0."""

    type: Literal["text", "image"]
    text: str | None = None
    image: int | None = None


def numbered(protocol: Protocol, observation: Observation) -> list[ObservationPart]:
    """An observation as a protocol writes it, tag included."""
    numbers = count()
    return [
        ObservationPart(type="text", text=part.text)
        if isinstance(part, Text)
        else ObservationPart(type="image", image=next(numbers))
        for part in protocol.wrap(observation)
    ]
