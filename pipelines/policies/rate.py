"""How many calls may be in flight: as many as the endpoint bears, found by asking.

Additive increase, multiplicative decrease (Chiu and Jain 1989), as in TCP: the gate opens quickly until the endpoint
first says 429 or 503 (or all of ``most`` are in flight), then by one per round of calls; each such answer narrows it,
once for all calls that set out before. Where narrowing alone does not help, because calls per minute are limited and
not calls at once, nothing is sent until the time that the endpoint names.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Literal

FIRST_LIMIT = 16
RAMP_STEP, RAMP_CUT = 0.5, 2 / 3
"""The ramp grows by half with each round, so two thirds were borne before. Doubling would find a server's cap sooner,
with as many rejected calls as the cap is high."""
STEADY_CUT = 0.75

Result = Literal["served", "busy", "failed"]


class Gate:
    """One for all calls of a policy.

    >>> began = await gate.enter()
    >>> ...  # one try
    >>> gate.leave(began, "served")
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.limit = float(min(most, FIRST_LIMIT))
        self.n_in_flight = 0
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_ramping = True
        self._n_cuts = 0
        self._borne = True
        """Whether a call that set out after the last cut was served."""
        self._closed_until = 0.0

    async def enter(self, *, first: bool = False) -> int:
        """Waits for a place; ``first`` goes before all who wait. Returns what ``leave`` asks for."""
        if not self._waiting and self._has_place():
            self.n_in_flight += 1
            return self._n_cuts
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._waiting.appendleft(place)
        else:
            self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._waiting.remove(place)
            else:  # given and cancelled in the same turn of the loop
                self.n_in_flight -= 1
                self._admit()
            raise
        return self._n_cuts

    def leave(self, began: int, result: Result, wait_seconds: float = 0.0) -> None:
        """One try is over. ``wait_seconds``: how long a busy endpoint asks to wait."""
        if result == "served":
            self._widen(began)
        elif result == "busy":
            self._narrow(began, wait_seconds)
        self.n_in_flight -= 1
        self._admit()

    def reopen(self) -> None:
        """Ends a pause: nobody who waits is going to send anything."""
        self._closed_until = 0.0
        self._admit()

    def _widen(self, began: int) -> None:
        if began != self._n_cuts:
            return  # it set out when more were let through: it says nothing about the limit of now
        self._borne = True
        if self.n_in_flight >= int(self.limit):  # a limit that nothing reached proves nothing
            step = RAMP_STEP if self._is_ramping else 1.0 / self.limit
            self.limit = min(float(self.most), self.limit + step)

    def _narrow(self, began: int, wait_seconds: float) -> None:
        if began != self._n_cuts:
            return  # it set out before the last cut, and was counted by it
        cut = RAMP_CUT if self._is_ramping else STEADY_CUT
        self.limit = max(1.0, min(self.limit, self.n_in_flight) * cut)
        self._is_ramping = False
        self._n_cuts += 1
        if not self._borne:
            self._close(wait_seconds)
        self._borne = False

    def _close(self, seconds: float) -> None:
        until = self._clock() + seconds
        if until > self._closed_until:
            self._closed_until = until
            asyncio.get_running_loop().call_later(seconds, self._admit)

    def _has_place(self) -> bool:
        return self.n_in_flight < int(self.limit) and self._clock() >= self._closed_until

    def _admit(self) -> None:
        while self._waiting and self._has_place():
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self.n_in_flight += 1
