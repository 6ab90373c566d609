"""A group, seen from the host: the decoded images of one prompt, and the sessions that share them."""

import errno
import json
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict

from darkroom.sandbox._guest.messages import WORK_FOLDER, SessionRequest
from darkroom.sandbox.errors import ImageUnreadable, InputsTooLarge, ResourcesExhausted, SandboxClosed, machine_errors
from darkroom.sandbox.folders import remove_tree
from darkroom.sandbox.frames import is_ready
from darkroom.sandbox.process import Window, is_doomed
from darkroom.sandbox.session import Closing, GroupTerms, Session, off_loop

_ANSWER_SECONDS = 30.0
_MAX_MESSAGE = 1 << 16
_LAST_BREATH_MILLISECONDS = 50  # its children end with it, and their sockets may close first


class Group(Closing):
    """Sessions over the same images. Closing it ends them all."""

    def __init__(
        self, channel: socket.socket, terms: GroupTerms, image_folder: str | None, forget: Callable[["Group"], None]
    ) -> None:
        self._channel, self._terms, self._image_folder, self._forget = channel, terms, image_folder, forget
        self._sessions: set[Session] = set()  # strong: a forgotten session is a stopped process until the group ends
        self._spares: deque[Future[Session]] = deque()  # started and attested; they wait for their seed
        self._lock = threading.Lock()  # guards the channel: one request and its answer at a time
        self._pidfd = -1  # of the group's process, once it is ready
        self._closed = False

    @property
    def n_sessions(self) -> int:
        """Sessions that are alive, spares included."""
        return len(self._sessions)

    @property
    def n_spares(self) -> int:
        return len(self._spares)

    def wait_until_ready(self, seconds: float, *, n_ahead: int) -> None:
        """Wait for the group, then start so many sessions in the background, for `session` to hand out. Raises
        ImageUnreadable, InputsTooLarge, ResourcesExhausted or SandboxClosed."""
        try:
            self._pidfd = self._answer(seconds)
        except BaseException:
            self.close()
            raise
        self._spares.extend(self._terms.spawner.submit(self._spawn) for _ in range(n_ahead))

    def session(self, *, seed: int = 0) -> Session:
        """A new session, locked down and checked. `seed` seeds random, numpy, OpenCV and the system's random bytes. One
        that was started ahead costs no time. Raises SandboxClosed, or SandboxError where the lock-down failed."""
        if self._closed:
            raise SandboxClosed("the group is closed")
        while True:
            spare = self._spares.popleft() if self._spares else None
            # one that is still waiting behind the spares of other groups is started at once, here
            session = self._spawn() if spare is None or spare.cancel() else spare.result()
            if session.start(seed=seed):
                return session
            session.close()
            if spare is None:
                raise SandboxClosed("the session ended before it was asked for anything")

    asession = off_loop(session)

    def kill(self) -> None:
        """The first half of `close`, which waits for nothing: every call of the group ends."""
        self._closed = True
        for session in list(self._sessions):
            session.kill()

    def close(self) -> None:
        self.kill()
        with self._lock:
            while self._spares:
                self._spares.popleft().cancel()
            for session in list(self._sessions):
                session.close()
            self._channel.close()  # the group process ends on its own
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1
        if self._image_folder:
            remove_tree(self._image_folder)
        self._forget(self)

    @machine_errors()
    def _spawn(self) -> Session:
        started, nonce = time.monotonic(), secrets.randbits(64)
        folder = self._terms.new_folder()
        request = asdict(SessionRequest(self._terms.next_slot(), nonce, folder or WORK_FOLDER))
        near, far = socket.socketpair()
        with far, ExitStack() as unless_started:
            unless_started.callback(near.close)
            window = Window(self._terms.limits.reply_mb << 20)
            unless_started.callback(window.close)
            with self._lock:
                if self._closed:
                    raise SandboxClosed("the group is closed")
                pidfd = self._answer(_ANSWER_SECONDS, json.dumps(request).encode(), [far.fileno(), window.fd])
            window.handed_over()
            unless_started.pop_all()
        ended, forget = self._has_ended, self._sessions.discard
        session = Session(
            near, window, self._terms, pidfd=pidfd, nonce=nonce, work_folder=folder, tree_ended=ended, forget=forget
        )
        self._sessions.add(session)
        with ExitStack() as unless_admitted:
            unless_admitted.callback(session.close)
            session.admit()
            if self._closed:  # while it was being started
                raise SandboxClosed("the group is closed")
            unless_admitted.pop_all()
        self._terms.meter.took("spawn_seconds", time.monotonic() - started)
        return session

    def _has_ended(self) -> bool:
        """Check for the end of the group's own process: what was killed with it is not the code's doing."""
        return (self._pidfd >= 0 and is_doomed(self._pidfd)) or is_ready(self._channel, 0, _LAST_BREATH_MILLISECONDS)

    def _answer(self, seconds: float, request: bytes = b"", fds: Sequence[int] = ()) -> int:
        """Send a request and receive the new session's pidfd; without a request that of the group, when it is ready."""
        self._channel.settimeout(seconds)
        try:
            if request:
                socket.send_fds(self._channel, [request], fds)
            message, pidfds, _, _ = socket.recv_fds(self._channel, _MAX_MESSAGE, 1, socket.MSG_CMSG_CLOEXEC)
        except TimeoutError as error:
            raise SandboxClosed(f"the group did not answer within {seconds:.0f} s") from error
        except OSError as error:
            raise SandboxClosed("the group has ended") from error
        if not message:
            raise SandboxClosed("the group has ended")
        if pidfds:
            return pidfds[0]
        answer = json.loads(message)
        if "unreadable" in answer:
            raise ImageUnreadable(answer["unreadable"], answer["reason"])
        if "too_large" in answer:
            raise InputsTooLarge(f"the images of a group have {answer['too_large']}: give fewer or smaller ones")
        if "exhausted" in answer:
            raise ResourcesExhausted(answer["exhausted"], answer["errno"])
        raise ResourcesExhausted("the descriptor of a process did not arrive", errno.EMFILE)
