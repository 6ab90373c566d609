"""A group, seen from the host: the decoded images of one prompt, and the sessions that share them."""

import json
import secrets
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self

from sandbox._guest.config import WORK_FOLDER, SessionRequest
from sandbox._guest.scan import ScanMode
from sandbox.attest import attest
from sandbox.errors import ImageUnreadable, SandboxClosed, SandboxError
from sandbox.limits import Limits
from sandbox.session import Admission, Session
from sandbox.tiers import Tier

_ANSWER_SECONDS = 30.0
_MAX_MESSAGE = 1 << 16


@dataclass(frozen=True)
class GroupTerms:
    """What a group takes over from its pool."""

    limits: Limits
    tier: Tier
    scan: ScanMode
    switched_off: frozenset[str]
    admission: Admission
    next_slot: Callable[[], int]
    new_folder: Callable[[], str | None]
    """A host folder for one session, in the lite tier; None in the full tier."""


class Group:
    """Sessions over the same images. Closing it ends them all."""

    def __init__(
        self, channel: socket.socket, terms: GroupTerms, image_folder: str | None, forget: Callable[["Group"], None]
    ) -> None:
        self._channel, self._terms, self._image_folder, self._forget = channel, terms, image_folder, forget
        self._sessions: set[Session] = set()  # strong: a forgotten session is a stopped process until the group ends
        self._lock = threading.Lock()  # guards the channel: one request and its answer at a time
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_until_ready(self, seconds: float) -> None:
        """Raises ImageUnreadable or SandboxClosed."""
        try:
            answer, _ = self._receive(seconds)
        except SandboxError:
            self.close()
            raise
        if "unreadable" in answer:
            self.close()
            raise ImageUnreadable(answer["unreadable"], answer["reason"])

    def session(self, *, seed: int = 0) -> Session:
        """A new session, locked down and checked. `seed` seeds random, numpy and OpenCV.

        Raises SandboxClosed, or SandboxError where the lock-down failed.
        """
        nonce, work_folder = secrets.randbits(64), self._terms.new_folder()
        request = SessionRequest(
            limits=asdict(self._terms.limits),
            slot=self._terms.next_slot(),
            seed=seed,
            nonce=nonce,
            scan=self._terms.scan,
            work_folder=work_folder or WORK_FOLDER,
        )
        near, far = socket.socketpair()
        with far:
            try:
                pidfd = self._ask(request, far.fileno())
            except BaseException:
                near.close()
                raise
        session = Session(near, pidfd, self._terms.limits, self._terms.admission, work_folder, self._sessions.discard)
        self._sessions.add(session)
        self._admit(session, nonce)
        return session

    def close(self) -> None:
        """End the group and every session of it."""
        with self._lock:
            self._closed = True
            for session in list(self._sessions):
                session.close()
            self._channel.close()  # the group process ends on its own
        if self._image_folder:
            shutil.rmtree(self._image_folder, ignore_errors=True)
        self._forget(self)

    def _ask(self, request: SessionRequest, fd: int) -> int:
        with self._lock:
            if self._closed:
                raise SandboxClosed("the group is closed")
            try:
                socket.send_fds(self._channel, [json.dumps(asdict(request)).encode()], [fd])
            except OSError as error:
                raise SandboxClosed("the group has ended") from error
            answer, fds = self._receive(_ANSWER_SECONDS)
        if not fds:
            raise SandboxError(f"the group could not start a session: {answer.get('failed')}")
        return fds[0]

    def _admit(self, session: Session, nonce: int) -> None:
        seccomp = "seccomp" not in self._terms.switched_off
        check = partial(attest, namespaces=self._terms.tier == "full", seccomp=seccomp)
        try:
            session.wait_for_hello(nonce, check)
        except BaseException:
            session.close()
            raise

    def _receive(self, seconds: float) -> tuple[dict[str, Any], list[int]]:
        self._channel.settimeout(seconds)
        try:
            message, fds, _, _ = socket.recv_fds(self._channel, _MAX_MESSAGE, 1, socket.MSG_CMSG_CLOEXEC)
        except TimeoutError as error:
            raise SandboxClosed(f"the group did not answer within {seconds:.0f} s") from error
        except OSError as error:
            raise SandboxClosed("the group has ended") from error
        if not message:
            raise SandboxClosed("the group has ended")
        return json.loads(message), fds
