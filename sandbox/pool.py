"""The pool: one tree of processes, from which the groups come."""

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Self

from sandbox._guest.config import IMAGE_FOLDER, WORK_FOLDER, GroupRequest
from sandbox._guest.scan import ScanMode
from sandbox.errors import SandboxClosed, SandboxError
from sandbox.group import Group, GroupTerms
from sandbox.images import ImageInput, close_all, open_images
from sandbox.limits import Limits
from sandbox.process import ZygoteProcess
from sandbox.session import Admission
from sandbox.tiers import Tier, choose_tier

_MAX_IMAGES = 64
_START_SECONDS = 30.0


class SandboxPool:
    """Where sessions come from; one per host process.

    Construction starts the tree and returns; the first `group` waits for it (two to four seconds). A tree that has died
    is started anew by the next `group`.

    - `tier`: "full" or "lite"; by default what DARKROOM_SANDBOX_TIER says, else "full". Never less than was asked for:
      where the kernel cannot give it, `group` raises SandboxUnavailable.
    - `scan`: "strict" refuses to delete, move or rename files; "own_files" allows it for the session's own; "off".
    - `concurrency`: calls that run at a time, by default the number of CPUs. A call is not timed while it waits for its
      turn.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        tier: str | None = None,
        scan: ScanMode = "strict",
        concurrency: int | None = None,
        _switched_off: Iterable[str] = (),
    ) -> None:
        self.limits = limits or Limits()
        self.tier: Tier = choose_tier(tier)
        self._scan: ScanMode = scan
        self._switched_off = frozenset(_switched_off)  # for the positive control of the tests, and nothing else
        n_calls = concurrency or os.cpu_count() or 1
        self._admission = Admission(
            slots=threading.BoundedSemaphore(n_calls),
            executor=ThreadPoolExecutor(n_calls, thread_name_prefix="sandbox"),
        )
        self._scratch = _make_scratch() if self.tier == "lite" else None
        self._counter = count(1)
        self._groups: set[Group] = set()
        self._lock = threading.Lock()  # guards _zygote and _closed: groups are opened from several threads
        self._closed = False
        self._zygote = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the tree's first process."""
        return self._zygote.pid

    def group(self, images: Sequence[ImageInput] = (), *, limits: Limits | None = None) -> Group:
        """Decode the images once, for all sessions of the group.

        Raises ImageUnreadable, SandboxUnavailable, SandboxClosed.
        """
        if len(images) > _MAX_IMAGES:
            raise SandboxError(f"a group has at most {_MAX_IMAGES} images, found {len(images)}")
        folder = self._new_folder("images") if self._scratch else None
        fds = open_images(images)
        try:
            with self._lock:
                channel = self._open_group(limits or self.limits, folder or IMAGE_FOLDER, fds)
        finally:
            close_all(fds)
        terms = GroupTerms(
            limits=limits or self.limits,
            tier=self.tier,
            scan=self._scan,
            switched_off=self._switched_off,
            admission=self._admission,
            next_slot=partial(next, self._counter),
            new_folder=self._session_folder,
        )
        group = Group(channel, terms, folder, self._groups.discard)
        self._groups.add(group)
        group.wait_until_ready(_START_SECONDS + self.limits.seconds * len(images))
        return group

    def close(self) -> None:
        """End every session, group and process of the pool."""
        with self._lock:
            self._closed = True
            for group in list(self._groups):
                group.close()
            self._zygote.close()
            self._admission.executor.shutdown(wait=False)
            if self._scratch:
                shutil.rmtree(self._scratch, ignore_errors=True)

    def _start(self) -> ZygoteProcess:
        home = WORK_FOLDER if self.tier == "full" else self._new_folder("warm")
        return ZygoteProcess(self.tier, home=home, switched_off=self._switched_off)

    def _open_group(self, limits: Limits, image_folder: str, fds: list[int]) -> socket.socket:
        if self._closed:
            raise SandboxClosed("the pool is closed")
        if self._zygote.ended:
            self._zygote.close()
            self._zygote = self._start()
        self._zygote.wait_until_ready()
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            self._zygote.send(asdict(GroupRequest(asdict(limits), image_folder)), [far.fileno(), *fds])
        return near

    def _session_folder(self) -> str | None:
        return self._new_folder("session", mode=0o700) if self._scratch else None

    def _new_folder(self, kind: str, *, mode: int = 0o755) -> str:
        folder = f"{self._scratch}/{kind}-{next(self._counter)}"
        os.mkdir(folder)
        os.chmod(folder, mode)  # whatever the umask says
        return folder


def _make_scratch() -> str:
    """A folder in memory that the sessions' own users may enter but not list."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="sandbox-", dir=parent)
    os.chmod(folder, 0o711)
    return folder
