"""This process's sandbox pool for rollouts in training: one group per prompt, whose images are decoded once."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from sandbox import Group, Limits, SandboxPool

_MOST_WAITING = 64
"""Programs that may wait for one of the pool's slots at a time, each in a thread."""


@dataclass(slots=True)
class _Lease:
    group: Group
    n_users: int = 0


@dataclass(slots=True)
class Workshop:
    """The pool and the groups that rollouts are using. Safe to use from several threads."""

    limits: Limits = field(default_factory=Limits)
    _pool: SandboxPool | None = None
    _threads: ThreadPoolExecutor | None = None
    _leases: dict[str, _Lease] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Threads that wait for programs; the programs themselves run in the pool's processes."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_MOST_WAITING, thread_name_prefix="darkroom-program")
            return self._threads

    def take(self, prompt: str, images: Sequence[Any], videos: Sequence[bytes] = ()) -> Group:
        """The group of a prompt, opened by its first rollout."""
        with self._lock:
            if self._pool is None:
                self._pool = SandboxPool(limits=self.limits)
                atexit.register(self.close)
            if prompt not in self._leases:
                self._leases[prompt] = _Lease(self._pool.group(images=list(images), videos=list(videos)))
            lease = self._leases[prompt]
            lease.n_users += 1
            return lease.group

    def give_back(self, prompt: str) -> None:
        """Closes the group when its last rollout is done with it."""
        with self._lock:
            lease = self._leases.get(prompt)
            if lease is None:  # the workshop was closed meanwhile
                return
            lease.n_users -= 1
            if not lease.n_users:
                del self._leases[prompt]
                lease.group.close()

    def close(self) -> None:
        """Ends all groups and the pool; the next ``take`` starts anew."""
        with self._lock:
            pool, self._pool = self._pool, None
            threads, self._threads = self._threads, None
            self._leases.clear()
        if pool is not None:
            atexit.unregister(self.close)
            pool.close()
        if threads is not None:
            threads.shutdown()


WORKSHOP = Workshop()
"""This process's workshop."""
