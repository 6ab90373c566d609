"""Work in threads whose results are wanted in order, with a bounded number of rows read ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

R = TypeVar("R")
T = TypeVar("T")


def in_threads(rows: Iterable[R], perform: Callable[[R], T], *, n_threads: int) -> Iterator[T]:
    """``perform`` on every row, in the rows' order. At most twice as many rows as threads are held at a time."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(n_threads) as threads:
        for row in rows:
            waiting.append(threads.submit(perform, row))
            if len(waiting) == 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
