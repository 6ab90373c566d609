"""This process's sandbox pool for rollouts in training: one group per prompt, whose images are decoded once."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from PIL import Image

from sandbox import Group, Limits, SandboxPool

_MOST_WAITING = 64
"""Programs that may wait for one of the pool's slots at a time, each in a thread."""


@dataclass(slots=True)
class _Lease:
    group: Future[Group] = field(default_factory=Future)
    n_users: int = 0


@dataclass(slots=True)
class Workshop:
    """The pool and the groups that rollouts are using. Safe to use from several threads.

    A group is opened outside of the lock: decoding a large picture takes a while, and the thread that generates asks
    for ``threads`` at every program.
    """

    limits: Limits = field(default_factory=Limits)
    _pool: SandboxPool | None = None
    _threads: ThreadPoolExecutor | None = None
    _leases: dict[str, _Lease] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Threads that wait for programs; the programs themselves run in the pool's processes."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_MOST_WAITING, thread_name_prefix="darkroom-program")
            return self._threads

    def take(self, prompt: str, images: Sequence[bytes | Image.Image], videos: Sequence[bytes] = ()) -> Group:
        """The group of a prompt, opened by its first rollout; others wait for it. Raises what opening it raises."""
        with self._lock:
            lease = self._leases.get(prompt)
            is_first = lease is None
            if lease is None:
                lease = self._leases[prompt] = _Lease()
            lease.n_users += 1
        if is_first:
            self._open(prompt, lease, images, videos)
        return lease.group.result()

    def give_back(self, prompt: str) -> None:
        """Closes the group when its last rollout is done with it."""
        with self._lock:
            lease = self._leases.get(prompt)
            if lease is None:  # the workshop was closed meanwhile
                return
            lease.n_users -= 1
            if lease.n_users:
                return
            del self._leases[prompt]
        lease.group.result().close()

    def close(self) -> None:
        """Ends all groups and the pool; the next ``take`` starts anew."""
        with self._pool_lock:
            pool, self._pool = self._pool, None
        with self._lock:
            threads, self._threads = self._threads, None
            self._leases.clear()
        if pool is not None:
            atexit.unregister(self.close)
            pool.close()
        if threads is not None:
            threads.shutdown()

    def _open(self, prompt: str, lease: _Lease, images: Sequence[bytes | Image.Image], videos: Sequence[bytes]) -> None:
        try:
            lease.group.set_result(self._opened_pool().group(images=list(images), videos=list(videos)))
        except BaseException as fault:
            with self._lock:  # whoever comes later tries again
                if self._leases.get(prompt) is lease:
                    del self._leases[prompt]
            lease.group.set_exception(fault)
            raise

    def _opened_pool(self) -> SandboxPool:
        with self._pool_lock:
            if self._pool is None:
                self._pool = SandboxPool(limits=self.limits)
                atexit.register(self.close)
            return self._pool


WORKSHOP = Workshop()
"""This process's workshop."""
