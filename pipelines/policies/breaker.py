"""Stops asking an endpoint that is broken: after so many failed calls in a row, every further one fails at once."""

from __future__ import annotations

from pipelines.policies.base import PolicyUnavailable


class Breaker:
    """Counts calls that the endpoint itself failed, after all their retries. A 400 is none: the endpoint works."""

    def __init__(self, name: str, *, most: int) -> None:
        self._name, self._most = name, most
        self._n_failures = 0
        self._why = ""

    def require(self) -> None:
        """Raises ``PolicyUnavailable`` once the endpoint counts as broken."""
        if self._why:
            raise PolicyUnavailable(self._why)

    def answered(self) -> None:
        """The endpoint answered, be it with a refusal of one request."""
        self._n_failures = 0

    def failed(self, text: str) -> bool:
        """A call was given up. True when that was one too many."""
        self._n_failures += 1
        if self._n_failures < self._most:
            return False
        self.open(f"{self._n_failures} calls in a row failed, the last one with {text}")
        return True

    def open(self, why: str) -> None:
        """No further call."""
        self._why = self._why or (
            f"{self._name} is given up: {why}. See to the endpoint, then run this again: finished calls are in the "
            "ledger and are not paid for a second time"
        )
