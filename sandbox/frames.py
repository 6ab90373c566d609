"""The bytes between host and session, and the host's check of every one of them.

A request is a header and the code; a reply is a header and a JSON object; the raw RGB pixels of its images lie in the
session's window, one after the other (`window`):

    header   <QI   the call's nonce (64 random bits), length of what follows
    start    {"seed": 7}, once, before the first call
    reply    {"status": "ok", "text": "...", "error": null, "edits": [[kind, before, after]],
              "images": [[name, width, height]], "artefacts": [[name, n_bytes, note]]}

An edit of the whole code is `[kind, null, difference]` (`_guest.differences`).

A session is hostile: a length is checked before anything is read or allocated, values are counted before any is made,
and a reply that was forged or queued for another call fails on the nonce.
"""

import json
import re
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar, cast

from darkroom.sandbox._guest.differences import (
    MAX_CHANGED_CHARS,
    MAX_EDITS,
    MAX_PART_CHARS,
    MAX_REPAIRS,
    MAX_REPLACEMENTS,
    DoesNotApply,
    apply_difference,
)
from darkroom.sandbox._guest.messages import HEADER
from darkroom.sandbox.calls import STATUSES, Artefact, Edit, Observation, Status
from darkroom.sandbox.errors import ProtocolViolation, raised_as
from darkroom.sandbox.limits import Limits
from darkroom.sandbox.neutral import UNSEEN, neutralise

T = TypeVar("T")

_BYTES_PER_PIXEL = 3
_GUEST_STATUSES = STATUSES - {"killed", "protocol"}
_MAX_OVER_LIMIT = 1 << 31
_MAX_SIDE = 65_535
_MAX_KIND, _MAX_NAME, _MAX_NOTE, _MAX_ERROR = 32, 256, 512, 4096
_BYTES_PER_CHAR = 6
"""What JSON in UTF-8 spends on one character at most."""
_BYTES_PER_VALUE = 24
"""A number of 62 bits and what stands around it."""
_CONTROL = re.compile(f"[{UNSEEN}]")
_STRING = re.compile(rb'"[^"]*+"')
_CELLS = 3
MAX_CODE_BYTES = 1 << 20
_READ_BYTES = 1 << 16

Rest = Callable[[], float]
"""Seconds to wait before asking again; raises TimeoutError when time is up."""


class Frame(NamedTuple):
    """An image that a reply announces."""

    name: str
    width: int
    height: int


def encode_request(nonce: int, code: str) -> bytes:
    payload = code.encode("utf-8", "surrogatepass")
    return HEADER.pack(nonce, len(payload)) + payload


def reply_cap(limits: Limits) -> int:
    """Most bytes that the JSON of an honest reply can take, however long the code is."""
    n_chars = 2 * limits.output_chars + _MAX_ERROR + MAX_CHANGED_CHARS + 2 * MAX_EDITS * MAX_PART_CHARS
    n_chars += (limits.files + limits.max_images) * _MAX_NAME + limits.files * _MAX_NOTE
    return _BYTES_PER_CHAR * n_chars + _BYTES_PER_VALUE * _max_values(limits)


def _max_values(limits: Limits) -> int:
    n_rows = limits.files + limits.max_images + MAX_EDITS
    return 2 * _CELLS * n_rows + _CELLS * MAX_REPAIRS * MAX_REPLACEMENTS


def parse_header(header: bytes, *, nonce: int, cap: int) -> int:
    """Length of the JSON that follows. Raises ProtocolViolation."""
    _require(len(header) == HEADER.size, "the reply is shorter than its header")
    answered, length = HEADER.unpack(header)
    _require(answered == nonce, "the reply answers another call")
    _require(length <= cap, f"the reply announces {length} bytes, at most {cap} are allowed")
    return int(length)


def _require(is_kept: bool, violation: str) -> None:
    if not is_kept:
        raise ProtocolViolation(violation)


def parse_json(payload: bytes, *, max_values: int = 64) -> dict[str, object]:
    """A JSON object of untrusted origin. Raises ProtocolViolation, before it makes too many values."""
    with raised_as(lambda _: ProtocolViolation("the reply is not JSON"), ValueError, RecursionError):
        _require(not _has_more_values(payload, max_values), f"the reply has more than {max_values} values")
        value: object = json.loads(payload.decode("utf-8", "surrogatepass"))
    if not isinstance(value, dict):
        raise ProtocolViolation("the reply is not a JSON object")
    return cast(dict[str, object], value)


def _has_more_values(payload: bytes, most: int) -> bool:
    """Estimate the values of a JSON text; False guarantees that there are no more, nor deeper nesting."""
    bare = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 2 * most:
        return True
    bare = _STRING.sub(b"", bare)
    return sum(map(bare.count, (b",", b"[", b"{"))) > most


def parse_reply(payload: bytes, limits: Limits, code: str = "") -> tuple[Observation, tuple[Frame, ...]]:
    """Check every field of a reply to this code; the pixels of its images are still to be read. Raises
    ProtocolViolation."""
    fields = parse_json(payload, max_values=_max_values(limits))
    status = _text(fields.get("status"), 16)
    _require(status in _GUEST_STATUSES, "the reply has an unknown status")
    error = fields.get("error")
    frames = _rows(fields.get("images"), limits.max_images, _frame)
    n_bytes = [frame.width * frame.height * _BYTES_PER_PIXEL for frame in frames]
    _require(sum(n_bytes) <= limits.reply_mb << 20, "the images of the reply are too large")
    _require(max(n_bytes, default=0) <= limits.max_pixels * _BYTES_PER_PIXEL, "an image of the reply is too large")
    observation = Observation(
        status=cast(Status, status),
        text=_shown(fields.get("text"), 2 * limits.output_chars + 256),
        error=None if error is None else _shown(error, _MAX_ERROR),
        edits=_rows(fields.get("edits"), MAX_EDITS, _Edits(code)),
        artefacts=_rows(fields.get("artefacts"), limits.files, _artefact),
        n_over_limit=_count(fields.get("n_over_limit", 0), 0, _MAX_OVER_LIMIT),
    )
    return observation, frames


def _rows(value: object, most: int, parse: Callable[[object, object, object], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise ProtocolViolation("a list of the reply is missing")
    _require(len(value) <= most, "a list of the reply is too long")
    is_whole = all(isinstance(row, list) and len(row) == _CELLS for row in value)
    _require(is_whole, "a row of the reply does not have three cells")
    return tuple(parse(*row) for row in value)


def _frame(name: object, width: object, height: object) -> Frame:
    return Frame(_name(name), _count(width, 1, _MAX_SIDE), _count(height, 1, _MAX_SIDE))


class _Edits:
    """Makes edits of the rows of one reply; those of the whole code follow one after another from the code."""

    def __init__(self, code: str) -> None:
        self._code, self._shown_code = code, ""
        self._n_repairs, self._n_chars = 0, 0

    def __call__(self, kind: object, before: object, after: object) -> Edit:
        name = _shown(kind, _MAX_KIND)
        if before is not None:
            return Edit(name, _shown(before, MAX_PART_CHARS), _shown(after, MAX_PART_CHARS))
        if not isinstance(after, list) or self._n_repairs == MAX_REPAIRS:
            raise ProtocolViolation("an edit of the reply is no difference, or one too many")
        items = cast(list[object], after)
        earlier = self._shown_code if self._n_repairs else _shown(self._code, len(self._code))
        self._n_repairs += 1
        self._n_chars += sum(len(item) for item in items if isinstance(item, str))
        _require(self._n_chars <= MAX_CHANGED_CHARS, "the edits of the reply are too large")
        with raised_as(lambda error: ProtocolViolation(str(error)), DoesNotApply):
            self._code = apply_difference(self._code, items)
        self._shown_code = _shown(self._code, len(self._code))
        return Edit(name, earlier, self._shown_code)


def _artefact(name: object, n_bytes: object, note: object) -> Artefact:
    return Artefact(_name(name), _count(n_bytes, 0, 1 << 62), _CONTROL.sub("\ufffd", _shown(note, _MAX_NOTE)))


def _count(value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ProtocolViolation("a number of the reply is out of range")
    return value


def _name(value: object) -> str:
    """A relative path that leads nowhere else and shows what it is: nothing that controls or cannot be seen is left."""
    parts = [part for part in _text(value, _MAX_NAME).split("/") if part not in ("", ".", "..")]
    return neutralise(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", "/".join(parts)))


def _text(value: object, most: int) -> str:
    """A string that databases and terminals can store: no NUL, no lone surrogate."""
    if not isinstance(value, str) or len(value) > most:
        raise ProtocolViolation("a text of the reply is missing or too long")
    return value.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _shown(value: object, most: int) -> str:
    return neutralise(_text(value, most))


class Channel:
    """The host's end of the socket to one session, which is never trusted to answer: in time or not at all."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._received = b""  # and not yet read: header and body mostly come in one piece

    def close(self) -> None:
        self._stream.close()

    def expect_silence(self) -> None:
        """Check that nothing came unasked. Raises ProtocolViolation, and EOFError where the other side is gone."""
        with suppress(BlockingIOError):
            if not self._received and not self._stream.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                raise EOFError
            raise ProtocolViolation("bytes arrived before the call")

    def send(self, data: bytes, rest: Rest) -> None:
        """Send all bytes. Raises TimeoutError or ConnectionError."""
        unsent = memoryview(data)
        while True:
            with suppress(BlockingIOError):
                unsent = unsent[self._stream.send(unsent, socket.MSG_DONTWAIT) :]
            if not unsent:
                return
            is_ready(self._stream, select.POLLOUT, 1000 * rest())

    def read(self, length: int, rest: Rest) -> bytes:
        """Exactly so many bytes. Raises TimeoutError, EOFError or ConnectionError."""
        parts, n_missing = [self._received], length - len(self._received)
        while n_missing > 0:
            with suppress(BlockingIOError):
                part = self._stream.recv(_READ_BYTES, socket.MSG_DONTWAIT)
                if not part:
                    raise EOFError
                parts.append(part)
                n_missing -= len(part)
            if n_missing > 0:
                is_ready(self._stream, select.POLLIN, 1000 * rest())  # `rest` is asked however fast the parts come
        data = b"".join(parts)
        self._received = data[length:]
        return data[:length]

    def read_frame(self, nonce: int, cap: int, rest: Rest) -> bytes:
        """The JSON of a reply, at most `cap` bytes. Raises as `read` does, and ProtocolViolation."""
        return self.read(parse_header(self.read(HEADER.size, rest), nonce=nonce, cap=cap), rest)


def is_ready(file: int | socket.socket, event: int, milliseconds: float) -> bool:
    """Wait for this event of poll(2), or for the end of the other side."""
    poll = select.poll()  # select() cannot take descriptors above 1023
    poll.register(file, event)
    return bool(poll.poll(milliseconds))
