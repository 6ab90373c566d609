"""The host's end of the socket to one session: reads exactly so many bytes, in time or not at all."""

import select
import socket
from collections.abc import Callable

from sandbox.errors import ProtocolViolation

_READ_BYTES = 1 << 20

Rest = Callable[[], float]
"""Seconds to wait before asking again; raises TimeoutError when time is up."""


class Channel:
    """A stream socket that is never trusted to answer."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream

    def close(self) -> None:
        self._stream.close()

    def expect_silence(self) -> None:
        """Raises ProtocolViolation where unrequested bytes wait, EOFError where the other side is gone."""
        poll = select.poll()  # select() cannot take descriptors above 1023
        poll.register(self._stream, select.POLLIN)
        if poll.poll(0):
            if not self._stream.recv(1, socket.MSG_PEEK):
                raise EOFError
            raise ProtocolViolation("bytes arrived before the call")

    def send(self, data: bytes, rest: Rest) -> None:
        """Raises TimeoutError or ConnectionError."""
        left = memoryview(data)
        while left:
            self._stream.settimeout(rest())
            try:
                left = left[self._stream.send(left) :]
            except TimeoutError:
                continue  # `rest` says when it is over

    def read(self, length: int, rest: Rest) -> bytearray:
        """Exactly so many bytes. Raises TimeoutError, EOFError or ConnectionError."""
        data = bytearray(length)
        left = memoryview(data)
        while left:
            self._stream.settimeout(rest())
            try:
                n_read = self._stream.recv_into(left, min(len(left), _READ_BYTES))
            except TimeoutError:
                continue
            if n_read == 0:
                raise EOFError
            left = left[n_read:]
        return data
