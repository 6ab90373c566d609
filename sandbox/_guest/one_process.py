"""Pools and processes of multiprocessing as threads of this process: the sandbox starts no other, as a note says.
Left out: shared_memory, and ending a process before its time."""

import concurrent.futures
import concurrent.futures.process
import multiprocessing
import multiprocessing.heap
import multiprocessing.pool
import multiprocessing.queues
import multiprocessing.sharedctypes
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing import context, dummy
from typing import Any

from darkroom.sandbox._guest.messages import note

_MAX_THREADS = 16
"""Of one pool; a session may have 64."""
_NOTE = "the sandbox starts no processes: multiprocessing runs in threads of this one"
_NO_FORK = "the sandbox starts no processes, so none is forked: multiprocessing.Pool runs in threads of this one"
_plain_context = context._default_context.get_context
_make_pool: Callable[..., None] = multiprocessing.pool.Pool.__init__  # whose name is about to be another's
_LOCKS = ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier")


class Process(threading.Thread):
    def start(self) -> None:
        note(_NOTE)
        super().start()

    @property
    def pid(self) -> int | None:
        return os.getpid() if self.ident else None

    @property
    def exitcode(self) -> int | None:
        return 0 if self.ident and not self.is_alive() else None

    def terminate(self) -> None:
        raise NotImplementedError("the sandbox starts no processes: this one is a thread, which cannot be terminated")

    kill = terminate

    def close(self) -> None:
        pass


class ThreadPool(multiprocessing.pool.ThreadPool):
    # by the name `Pool`, the class that this one takes the place of is asked for it
    _wait_for_updates = staticmethod(multiprocessing.pool.Pool._wait_for_updates)  # type: ignore[attr-defined]

    def __init__(self, processes: int | None = None, initializer: Any = None, initargs: tuple[Any, ...] = ()) -> None:
        _make_pool(self, _n_threads(processes), initializer, initargs)


class Pool(ThreadPool):
    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        maxtasksperchild: int | None = None,
        context: object = None,
    ) -> None:
        note(_NOTE)
        super().__init__(processes, initializer, initargs)


class ProcessPoolExecutor(ThreadPoolExecutor):
    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: object = None,
        initializer: Any = None,
        initargs: tuple[Any, ...] = (),
        **_options: object,
    ) -> None:
        note(_NOTE)
        super().__init__(_n_threads(max_workers), "", initializer, initargs)


class Queue(queue.Queue[Any]):
    def close(self) -> None:
        pass

    join_thread = cancel_join_thread = close


class Manager(AbstractContextManager["Manager"]):
    """Manager whose lists, dicts, queues and locks are ordinary ones."""

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(dummy, name)


def _get_context(method: str | None = None) -> Any:
    """Get a context. Raises OSError for "fork", the one method that means more than to have a result."""
    if method == "fork":
        raise OSError(_NO_FORK)
    return _plain_context(method)


def install() -> None:
    multiprocessing.get_context = _get_context
    setattr(multiprocessing.heap.Arena, "_dir_candidates", [])  # noqa: B010  # not /dev/shm: the temporary folder
    names: dict[str, Any] = {name: getattr(threading, name) for name in _LOCKS}
    names |= {"Queue": Queue, "JoinableQueue": Queue, "Pool": Pool, "Manager": Manager}
    for name, value in names.items():
        setattr(multiprocessing, name, value)
        setattr(context.BaseContext, name, staticmethod(value))
    contexts = (context.DefaultContext, context.ForkContext, context.SpawnContext, context.ForkServerContext)
    replaced: list[tuple[Any, type]] = [(owner, Process) for owner in (multiprocessing, *contexts)]
    replaced += [(multiprocessing.pool, Pool), (multiprocessing.pool, ThreadPool)]
    replaced += [(owner, ProcessPoolExecutor) for owner in (concurrent.futures, concurrent.futures.process)]
    for owner, value in replaced:
        setattr(owner, value.__name__, value)


def _n_threads(n_workers: int | None) -> int:
    return min(n_workers or os.cpu_count() or 1, _MAX_THREADS)
