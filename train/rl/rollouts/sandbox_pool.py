"""The sandbox groups of rollouts in training: one group per prompt, whose images are decoded once.

The groups belong to the pool of this process (``darkroom.pipelines.generation.sandbox_sessions.process_pool``).
"""

import threading
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from PIL import Image

from darkroom.pipelines.generation.sandbox_sessions import close_process_pool, process_pool
from darkroom.sandbox import Group, Limits

_MOST_WAITING = 64
"""Executions that may wait for one of the pool's slots at a time, each in a thread."""


@dataclass(slots=True)
class _Lease:
    group: Future[Group] = field(default_factory=Future)
    n_users: int = 0


@dataclass(slots=True)
class PromptGroups:
    """The groups that rollouts share, by prompt and what it calls the images. Safe to use from several threads.

    A group is opened outside of the lock: decoding a large image takes a while, and the thread that generates uses
    ``threads`` for every execution.
    """

    limits: Limits = field(default_factory=Limits)
    _threads: ThreadPoolExecutor | None = None
    _leases: dict[Hashable, _Lease] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def threads(self) -> ThreadPoolExecutor:
        """Threads that wait for executions; the code itself runs in the pool's processes."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_MOST_WAITING, thread_name_prefix="darkroom-program")
            return self._threads

    def acquire(
        self,
        prompt: Hashable,
        images: Sequence[bytes | Image.Image],
        videos: Sequence[bytes] = (),
        names: Sequence[str] = (),
    ) -> Group:
        """The group of a prompt, opened by its first rollout; others wait for it. Raises what opening it raises."""
        with self._lock:
            lease = self._leases.get(prompt)
            is_first = lease is None
            if lease is None:
                lease = self._leases[prompt] = _Lease()
            lease.n_users += 1
        if is_first:
            self._open(prompt, lease, images, videos, names)
        return lease.group.result()

    def release(self, prompt: Hashable) -> None:
        """Closes the group after its last rollout."""
        with self._lock:
            lease = self._leases.get(prompt)
            if lease is None:  # all groups were closed meanwhile
                return
            lease.n_users -= 1
            if lease.n_users:
                return
            del self._leases[prompt]
        lease.group.result().close()

    def close(self) -> None:
        """Ends all groups and the pool; the next ``acquire`` starts a new one."""
        with self._lock:
            threads, self._threads = self._threads, None
            self._leases.clear()
        close_process_pool(self.limits)
        if threads is not None:
            threads.shutdown()

    def _open(
        self,
        prompt: Hashable,
        lease: _Lease,
        images: Sequence[bytes | Image.Image],
        videos: Sequence[bytes],
        names: Sequence[str],
    ) -> None:
        try:
            lease.group.set_result(process_pool(self.limits).group(list(images), videos=list(videos), names=names))
        except BaseException as error:
            with self._lock:  # the next rollout tries again
                if self._leases.get(prompt) is lease:
                    del self._leases[prompt]
            lease.group.set_exception(error)
            raise


PROMPT_GROUPS = PromptGroups()
"""This process's groups."""
