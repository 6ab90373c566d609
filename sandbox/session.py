"""One rollout's session, seen from the host: send code, read a checked reply, kill what does not answer."""

import asyncio
import os
import secrets
import select
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from PIL import Image

from sandbox.errors import ProtocolViolation, SandboxClosed, SandboxError
from sandbox.frames import (
    MAX_CODE_BYTES,
    Frame,
    Reply,
    encode_request,
    parse_header,
    parse_json,
    parse_reply,
    reply_cap,
)
from sandbox.limits import Limits
from sandbox.observation import Observation, ShownImage, Status
from sandbox.wire import HEADER

_READ_BYTES = 1 << 20
_END_MILLISECONDS = 5_000
_START_SECONDS = 30.0
_MAX_HELLO_BYTES = 1 << 16


@dataclass(frozen=True)
class Admission:
    """How many calls of a pool run at a time: more than there are CPUs would only time one another out."""

    slots: threading.Semaphore
    executor: Executor


class Session:
    """State lives across calls. Thread-safe; calls of one session run one after another.

    Between calls the process is stopped: a thread that the code left behind computes nothing.
    """

    def __init__(
        self,
        channel: socket.socket,
        pidfd: int,
        limits: Limits,
        admission: Admission,
        work_folder: str | None,
        forget: Callable[["Session"], None],
    ) -> None:
        self._channel, self._pidfd, self._limits = channel, pidfd, limits
        self._admission, self._work_folder, self._forget = admission, work_folder, forget
        self._lock = threading.RLock()  # guards the channel: one call at a time
        self._pidfd_lock = threading.Lock()  # guards the descriptor: `close` kills while a call holds _lock
        self._ended: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        return self._ended is None

    def run(self, code: str) -> Observation:
        """Run the code in this session. What goes wrong in it is in the observation; nothing is raised for it.

        The clock starts when one of the pool's slots is free. In a session that has ended the status is `killed`.
        """
        with self._lock, self._admission.slots:
            started = time.monotonic()
            if self._ended is not None:
                return _lost("killed", f"SessionEnded: {self._ended}", 0.0)
            try:
                observation = self._exchange(code, started)
            except TimeoutError:
                error = (
                    f"TimeoutError: no answer {self._limits.grace:g} s after the limit of {self._limits.seconds:g} s"
                )
                return self._end("timeout", error, started)
            except ProtocolViolation as violation:
                return self._end("protocol", f"ProtocolViolation: {violation}", started)
            except (EOFError, ConnectionError):
                return self._end("killed", "SessionEnded: the process of the session ended", started)
            self._signal(signal.SIGSTOP)
            return observation

    async def arun(self, code: str) -> Observation:
        """`run`, off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._admission.executor, self.run, code)

    def wait_for_hello(self, nonce: int, check: Callable[[int], None]) -> None:
        """Read the session's first frame and check its process. Raises SandboxError where it is not locked down."""
        deadline = time.monotonic() + _START_SECONDS
        try:
            length = parse_header(self._read(HEADER.size, deadline), nonce=nonce, cap=_MAX_HELLO_BYTES)
            hello = parse_json(self._read(length, deadline))
        except (TimeoutError, EOFError, ConnectionError) as error:
            raise SandboxClosed("the session ended before it was ready") from error
        if hello.get("ready") is not True:
            raise SandboxError(f"a session could not be locked down; nothing was run: {hello.get('failed')}")
        check(self._pidfd)
        self._signal(signal.SIGSTOP)

    def close(self) -> None:
        """Kill the session; a call that is running in another thread returns `killed`."""
        self._signal(signal.SIGKILL)
        with self._lock:
            self._ended = self._ended or "it was closed"
            if self._pidfd >= 0:
                _wait_for_end(self._pidfd)
                with self._pidfd_lock:
                    os.close(self._pidfd)
                    self._pidfd = -1
                self._channel.close()
            if self._work_folder:
                shutil.rmtree(self._work_folder, ignore_errors=True)
        self._forget(self)

    def _exchange(self, code: str, started: float) -> Observation:
        nonce, deadline = secrets.randbits(64), started + self._limits.seconds + self._limits.grace
        request = encode_request(nonce, code)
        if len(request) > MAX_CODE_BYTES:
            return _lost("blocked", f"ValueError: the code is larger than {MAX_CODE_BYTES} bytes", 0.0, ended=False)
        if _is_readable(self._channel):
            if not self._channel.recv(1, socket.MSG_PEEK):
                raise EOFError
            raise ProtocolViolation("bytes arrived before the call")
        self._signal(signal.SIGCONT)
        self._channel.settimeout(max(deadline - time.monotonic(), 0.01))
        self._channel.sendall(request)
        cap = reply_cap(self._limits, n_code_bytes=len(request))
        length = parse_header(self._read(HEADER.size, deadline), nonce=nonce, cap=cap)
        reply = parse_reply(self._read(length, deadline), self._limits)
        images = tuple(self._read_image(frame, deadline) for frame in reply.images)
        return _observed(reply, images, time.monotonic() - started)

    def _read_image(self, frame: Frame, deadline: float) -> ShownImage:
        data = self._read(frame.n_bytes, deadline)
        return ShownImage(Image.frombytes("RGB", (frame.width, frame.height), data), frame.name)

    def _read(self, length: int, deadline: float) -> bytearray:
        data = bytearray(length)
        rest = memoryview(data)
        while rest:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            self._channel.settimeout(remaining)
            n_read = self._channel.recv_into(rest, min(len(rest), _READ_BYTES))
            if n_read == 0:
                raise EOFError
            rest = rest[n_read:]
        return data

    def _signal(self, number: signal.Signals) -> None:
        with self._pidfd_lock, suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, number)

    def _end(self, status: Status, error: str, started: float) -> Observation:
        seconds = time.monotonic() - started
        self._ended = f"the session ended earlier ({error})"
        self.close()
        return _lost(status, error, seconds)


def _observed(reply: Reply, images: tuple[ShownImage, ...], seconds: float) -> Observation:
    return Observation(reply.status, reply.text, images, reply.error, seconds, reply.edits, reply.artefacts)


def _lost(status: Status, error: str, seconds: float, *, ended: bool = True) -> Observation:
    return Observation(status, "", (), error, seconds, (), (), session_ended=ended)


def _is_readable(channel: socket.socket) -> bool:
    poll = select.poll()  # select() cannot take descriptors above 1023
    poll.register(channel, select.POLLIN)
    return bool(poll.poll(0))


def _wait_for_end(pidfd: int) -> None:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    poll.poll(_END_MILLISECONDS)
