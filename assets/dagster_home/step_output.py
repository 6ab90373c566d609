"""What steps print: Dagster copies it to the terminal and into its logs, with two processes for each stream.

They are in the command's process group. Ctrl-C reached them as well, and those that are Python left a traceback each
between the command's own lines.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import dagster as dg


def keep_from_ctrl_c(instance: dg.DagsterInstance) -> None:
    """The processes that copy output in this instance end when their step ends, and not by Ctrl-C."""
    manager = instance.compute_log_manager
    capture: Callable[[Sequence[str]], AbstractContextManager[Any]] = manager.capture_logs

    @contextmanager
    def capture_logs(log_key: Sequence[str]) -> Iterator[Any]:
        with ExitStack() as captured:
            with _blocked(signal.SIGINT):  # which processes inherit that are started meanwhile
                context = captured.enter_context(capture(log_key))
            yield context

    setattr(manager, "capture_logs", capture_logs)  # noqa: B010  # mypy allows no assignment to a method


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
