"""Number of calls in flight to an endpoint: found by trying, as TCP finds a line's capacity."""

import asyncio
import time
from collections import deque
from typing import Literal

FIRST_LIMIT = 16
RAMP_STEP, RAMP_CUT = 0.5, 2 / 3
"""The ramp grows by half with each round, so two thirds worked before. Doubling would find a server's cap sooner, with
as many rejected calls as the cap is high."""
STEADY_CUT = 0.75

CallOutcome = Literal["served", "busy", "failed"]


class ConcurrencyLimiter:
    """An adaptive limit on the calls in flight, one for all calls of a policy.

    Additive increase, multiplicative decrease (Chiu and Jain 1989), as in TCP: the limit grows quickly until the
    endpoint first answers 429 or 503 (or ``maximum`` is reached), then by one per round of calls; each such answer cuts
    it, once for all calls that started before. Where cuts alone do not help, because calls per minute are limited and
    not concurrent ones, nothing is sent until the time that the endpoint names.

    >>> ticket = await limiter.enter()
    >>> ...  # one try
    >>> limiter.leave(ticket, "served")
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.limit = float(min(maximum, FIRST_LIMIT))
        self.leased = maximum
        """No more than these, where processes share an endpoint's calls (``shared_calls.py``)."""
        self.n_in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_ramping = True
        self._n_cuts = 0
        self._was_served = True
        """Return whether a call that started after the last cut was served."""
        self._closed_until = 0.0

    async def enter(self, *, first: bool = False) -> int:
        """Waits for a place, ``first`` before all others that wait. Returns the ticket for ``leave``."""
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
            else:  # admitted and cancelled in the same iteration of the event loop
                self.n_in_flight -= 1
                self._admit()
            raise
        return self._n_cuts

    def leave(self, ticket: int, outcome: CallOutcome, wait_seconds: float = 0.0) -> None:
        """Ends one try. ``wait_seconds``: the wait that a busy endpoint requires."""
        if outcome == "served":
            self._raise_limit(ticket)
        elif outcome == "busy":
            self._cut_limit(ticket, wait_seconds)
        self.n_in_flight -= 1
        self._admit()

    @property
    def n_wanted(self) -> int:
        """Calls in flight and waiting."""
        return self.n_in_flight + len(self._waiting)

    def lease(self, n_calls: int) -> None:
        """Allow ``n_calls`` in flight from now on; those beyond finish."""
        self.leased = n_calls
        self._admit()

    def reopen(self) -> None:
        """Ends a pause and a lease: the waiting calls are all going to fail without a request."""
        self._closed_until = 0.0
        self.leased = self.maximum
        self._admit()

    def _raise_limit(self, ticket: int) -> None:
        if ticket != self._n_cuts:
            return  # it started under an earlier, higher limit: no evidence about the current one
        self._was_served = True
        if self.n_in_flight >= int(self.limit):  # a limit that nothing reached proves nothing
            step = RAMP_STEP if self._is_ramping else 1.0 / self.limit
            self.limit = min(float(self.maximum), self.limit + step)

    def _cut_limit(self, ticket: int, wait_seconds: float) -> None:
        if ticket != self._n_cuts:
            return  # it started before the last cut, which covers it
        cut = RAMP_CUT if self._is_ramping else STEADY_CUT
        self.limit = max(1.0, min(self.limit, self.n_in_flight) * cut)
        self._is_ramping = False
        self._n_cuts += 1
        if not self._was_served:
            self._close(wait_seconds)
        self._was_served = False

    def _close(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        if until > self._closed_until:
            self._closed_until = until
            asyncio.get_running_loop().call_later(seconds, self._admit)

    def _has_place(self) -> bool:
        return self.n_in_flight < min(int(self.limit), self.leased) and time.monotonic() >= self._closed_until

    def _admit(self) -> None:
        while self._waiting and self._has_place():
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self.n_in_flight += 1
