"""One rollout's session, seen from the host: send code, read a checked reply, kill what does not answer."""

import asyncio
import json
import os
import secrets
import signal
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from darkroom.sandbox._guest.messages import INTERRUPT
from darkroom.sandbox.calls import Meter, Observation, ShownImage, Slots, Status, Turn
from darkroom.sandbox.cgroups import SessionCgroup, TreeCgroup
from darkroom.sandbox.errors import ProtocolViolation, SandboxClosed, SandboxError
from darkroom.sandbox.folders import remove_tree
from darkroom.sandbox.frames import MAX_CODE_BYTES, Channel, encode_request, parse_json, parse_reply, reply_cap
from darkroom.sandbox.limits import Deadline, Limits, ProcessClock, Starved, wall_deadline
from darkroom.sandbox.process import END_MILLISECONDS, Window, has_ended, pid_of

_START_SECONDS = 30.0
_MAX_HELLO_BYTES = 1 << 16
_WARM_MB = 128
"""What a session may copy of the warm libraries, on top of its own memory and files."""
_MAX_TASKS = 64
S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class GroupTerms:
    """Terms that a group and its sessions take over from their pool."""

    limits: Limits
    attest: Callable[[int], None]
    """Checks the lock-down of the process with this pidfd."""
    slots: Slots
    executor: Executor
    """Runs the calls of event loops."""
    meter: Meter
    cgroup: TreeCgroup | None
    """Where cgroup v2 was delegated to this process."""
    spawner: Executor
    """Starts sessions ahead, in the background."""
    next_slot: Callable[[], int]
    new_folder: Callable[[], str | None]
    """A host folder for one session, in the lite tier; None in the full tier."""


class Closing(ABC):
    """Closed at the end of a `with` or an `async with`."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)


def off_loop(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The same method for an event loop, which goes on while a thread waits."""

    @wraps(method)
    async def run(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *args, **options)

    return run


class Session(Closing):
    """State lives across calls; thread-safe. Between calls the process is stopped, with all that the code left."""

    def __init__(
        self,
        channel: socket.socket,
        window: Window,
        terms: GroupTerms,
        *,
        pidfd: int,
        nonce: int,
        work_folder: str | None,
        tree_ended: Callable[[], bool],
        forget: Callable[["Session"], None],
    ) -> None:
        self._channel, self._window, self._clock = Channel(channel), window, ProcessClock(pid_of(pidfd))
        self._terms, self._limits, self._pidfd, self._nonce = terms, terms.limits, pidfd, nonce
        self._work_folder, self._tree_ended, self._forget = work_folder, tree_ended, forget
        self._lock = threading.RLock()  # guards the channel: one call at a time
        self._pidfd_lock = threading.Lock()  # guards the descriptor: `close` kills while a call holds _lock
        self._cgroup: SessionCgroup | None = None
        self._ended: str | None = None
        self._closing = False
        self.lost = False
        """The session ended for no reason of the code's, so that its last observation says nothing of the code: the
        sandbox's own processes ended, or the call reached `Limits.wall_seconds` because the machine was busy."""

    @property
    def alive(self) -> bool:
        """False once it was closed or an observation was `broken`."""
        return self._ended is None

    def run(self, code: str) -> Observation:
        """Run the code in this session. What goes wrong in it is in the observation; nothing is raised for it. The
        clock starts when one of the pool's slots is free. In a session that has ended the status is `killed`."""
        meter, called_at = self._terms.meter, time.monotonic()
        with self._lock:
            with meter.counting("waiting"):
                turn = self._terms.slots.wait(self._is_over)
            meter.took("queue_seconds", time.monotonic() - called_at)
            with meter.counting("running"):
                try:
                    observation = self._observe(code, turn)
                finally:
                    turn.note(False)
            meter.ended(observation)
            return observation

    async def arun(self, code: str) -> Observation:
        """Run code off the event loop; the threads that it takes are limited, however many rollouts wait."""
        try:
            call = self._terms.executor.submit(self.run, code)
        except RuntimeError:  # the pool was closed, and this session with it
            return self.run(code)
        return await asyncio.wrap_future(call)

    def admit(self) -> None:
        """Read the first frame, check and stop the process, and let a delegated cgroup limit it as a whole, beside its
        own rlimits. Raises SandboxError where it is not locked down."""
        deadline = wall_deadline(_START_SECONDS)
        try:
            hello = parse_json(self._channel.read_frame(self._nonce, _MAX_HELLO_BYTES, deadline))
        except (TimeoutError, EOFError, ConnectionError) as error:
            raise SandboxClosed("the session ended before it was ready") from error
        if hello.get("ready") is not True:
            raise SandboxError(f"a session could not be locked down; nothing was run: {hello.get('failed')}")
        terms, limits = self._terms, self._limits
        terms.attest(self._pidfd)
        self._signal(signal.SIGSTOP)
        if terms.cgroup is not None:
            n_bytes = limits.memory_mb + limits.disk_mb + limits.reply_mb + _WARM_MB << 20
            self._cgroup = terms.cgroup.add(pid_of(self._pidfd), memory_bytes=n_bytes, max_tasks=_MAX_TASKS)

    def start(self, *, seed: int) -> bool:
        """Tell a waiting session its seed, which it reads with its first call. False: it has ended meanwhile."""
        with self._lock:
            if self._ended is not None or has_ended(self._pidfd):
                return False
            self._channel.send(encode_request(self._nonce, json.dumps({"seed": seed})), wall_deadline(_START_SECONDS))
            return True

    def kill(self) -> None:
        """The first half of `close`, which waits for nothing: calls that run or wait in other threads end."""
        self._closing = True
        self._signal(signal.SIGKILL)
        self._terms.slots.wake()

    def close(self) -> None:
        """Kill the session; a call that runs, or waits for its turn, in another thread returns `killed`."""
        self.kill()
        with self._lock:
            self._ended = self._ended or "it was closed"
            if self._pidfd >= 0:
                has_ended(self._pidfd, within_milliseconds=END_MILLISECONDS)
                with self._pidfd_lock:
                    os.close(self._pidfd)
                    self._pidfd = -1
                self._channel.close()
                self._window.close()
                self._clock.close()
                if self._cgroup is not None:
                    self._cgroup.close()
            if self._work_folder:
                remove_tree(self._work_folder)
        self._forget(self)

    def _is_over(self) -> bool:
        return self._closing or self._ended is not None

    def _observe(self, code: str, turn: Turn) -> Observation:
        started = time.monotonic()
        if self._is_over():
            return Observation("killed", error=f"SessionEnded: {self._ended or 'it was closed'}", broken=True)
        try:
            observation = self._exchange(code, started, turn)
        except Starved:
            self.lost = True
            return self._end("killed", "SessionEnded: this machine was too busy to run the call", started)
        except TimeoutError:
            seconds = time.monotonic() - started
            return self._end("timeout", f"TimeoutError: no answer after {seconds:.1f} s: killed", started)
        except ProtocolViolation as violation:
            return self._end("protocol", f"ProtocolViolation: {violation}", started)
        except (EOFError, ConnectionError):
            return self._end(*self._reason_of_end(), started)
        except BaseException:  # Ctrl-C in the host: the answer would come unasked
            self._end("killed", "the host was interrupted during the call", started)
            raise
        self._signal(signal.SIGSTOP)
        return observation

    def _exchange(self, code: str, started: float, turn: Turn) -> Observation:
        nonce = secrets.randbits(64)
        request = encode_request(nonce, code)
        if len(request) > MAX_CODE_BYTES:
            return Observation("blocked", error=f"ValueError: the code is larger than {MAX_CODE_BYTES} bytes")
        self._channel.expect_silence()
        deadline = Deadline(self._clock, self._limits, lambda: self._signal(INTERRUPT), turn.note)
        self._signal(signal.SIGCONT)
        self._channel.send(request, deadline)
        payload = self._channel.read_frame(nonce, reply_cap(self._limits), deadline)
        observation, frames = parse_reply(payload, self._limits, code)
        pixels = self._window.read([(frame.width, frame.height) for frame in frames])
        images = tuple(ShownImage(image, frame.name) for image, frame in zip(pixels, frames, strict=True))
        return replace(observation, images=images, seconds=time.monotonic() - started)

    def _signal(self, number: int) -> None:
        with self._pidfd_lock, suppress(ProcessLookupError):
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, number)

    def _reason_of_end(self) -> tuple[Status, str]:
        if self._cgroup is not None and self._cgroup.n_memory_kills:
            return "memory", "MemoryError: the kernel ended the session, which used more than its memory"
        self.lost = not self._closing and self._tree_ended()
        whose = "the sandbox's own processes" if self.lost else "the process of the session"
        return "killed", f"SessionEnded: {whose} ended"

    def _end(self, status: Status, error: str, started: float) -> Observation:
        seconds = time.monotonic() - started
        if not self._closing:  # by its owner, meanwhile
            self._terms.meter.count("broken")
        self._ended = f"the session ended earlier ({error})"
        self.close()
        return Observation(status, error=error, seconds=seconds, broken=True)
