"""Which calls of a pool run now: more than there are CPUs would only slow one another down."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from darkroom.sandbox.stats import Meter


class Slots:
    """One per call that computes. One that sleeps lends its slot, and takes one back without waiting for it."""

    def __init__(self, n_slots: int) -> None:
        self._n_free = n_slots  # below zero where sleepers have woken up: later calls wait until it is made good
        self._changed = threading.Condition()  # guards _n_free: calls begin and end in many threads

    def wait(self, is_over: Callable[[], bool]) -> "Turn":
        """A turn with a slot, or without one as soon as `is_over` says that the call has become pointless."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_free > 0 or is_over())
            if is_over():
                self._changed.notify()  # the slot that woke us is for another
                return Turn(self, False)
            self._n_free -= 1
            return Turn(self, True)

    def change(self, n_free: int) -> None:
        with self._changed:
            self._n_free += n_free
            if self._n_free > 0:
                self._changed.notify()

    def wake(self) -> None:
        """Let every call that waits look whether it is over."""
        with self._changed:
            self._changed.notify_all()


class Turn:
    """One call's, from its admission to its end."""

    def __init__(self, slots: Slots, computes: bool) -> None:
        self._slots, self._computes = slots, computes

    def note(self, computes: bool) -> None:
        if computes is not self._computes:
            self._computes = computes
            self._slots.change(-1 if computes else 1)

    def end(self) -> None:
        self.note(False)


@dataclass(frozen=True)
class Admission:
    """What the calls of a pool share."""

    slots: Slots
    executor: Executor
    """Runs the calls of event loops."""
    meter: Meter
