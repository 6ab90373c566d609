"""The session's end of the socket: requests in, replies out (their form: `darkroom.sandbox.frames`)."""

import json
import os
import struct
from typing import Any

HEADER = struct.Struct("<QI")
"""The header of every frame, on both sides: the call's nonce (64 random bits) and the length of the JSON or code that
follows."""


def next_frame(fd: int) -> tuple[int, bytes]:
    """Nonce and payload of the next request. The process ends where the host has hung up."""
    nonce, length = HEADER.unpack(_read(fd, HEADER.size))
    return nonce, _read(fd, length)


def send(fd: int, nonce: int, fields: dict[str, Any]) -> None:
    payload = json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")  # half as long as with escapes
    view = memoryview(HEADER.pack(nonce, len(payload)) + payload)
    while view:
        view = view[os.write(fd, view) :]


def _read(fd: int, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = os.read(fd, min(length - len(data), 1 << 20))
        if not part:
            os._exit(0)
        data += part
    return bytes(data)
