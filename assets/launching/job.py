"""A program that was started somewhere: whether it has ended, and how to end it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class LaunchFault(Exception):
    """A program could not be started, or failed: what happened, and what to do."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended; ``words`` say it where it failed."""

    succeeded: bool
    words: str = ""
    can_be_taken_over: bool = False
    """Whether a later run may still take in what it reports."""


class Job(Protocol):
    """What every way of launching gives."""

    @property
    def where(self) -> str:
        """Which process or job of what it is, for a person."""

    def ended(self, *, closed: bool) -> Ending | None:
        """None while it runs. ``closed``: the program has said that it reports no more."""

    def stop(self) -> None:
        """Ends the program and all that it started; returns when that is done, or asked for where nobody can wait."""
