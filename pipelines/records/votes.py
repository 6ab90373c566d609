"""Votes: several answers of one model to one question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipelines.records.trajectories import Usage

Majority = Literal["yes", "no", "tie"]


def majority(n_yes: int, n_no: int) -> Majority:
    """The larger side, or ``tie``."""
    return "tie" if n_yes == n_no else "yes" if n_yes > n_no else "no"


@dataclass(frozen=True, slots=True)
class Votes:
    """How several independent answers of one model to one question went (``pipelines/voting.py``).

    ``ballots``: yes, no, or None for one that was no answer, in the order of their seeds. ``n_wanted``: how many were
    to be asked for; fewer are there where the result was certain before. ``reasons``: what each said, as far as it did.
    ``threshold``: the share of yes from which on the judge says yes, where it was calibrated.
    """

    judge: str
    ballots: tuple[bool | None, ...]
    n_wanted: int
    reasons: tuple[str, ...] = ()
    usage: Usage = Usage()
    threshold: float | None = None

    @property
    def n(self) -> int:
        """All ballots, the invalid ones included."""
        return len(self.ballots)

    @property
    def n_yes(self) -> int:
        """Ballots that say yes."""
        return self.ballots.count(True)

    @property
    def n_no(self) -> int:
        """Ballots that say no."""
        return self.ballots.count(False)

    @property
    def n_invalid(self) -> int:
        """Ballots that were no answer."""
        return self.ballots.count(None)

    @property
    def n_saved(self) -> int:
        """Ballots that nobody had to be asked for."""
        return self.n_wanted - self.n

    @property
    def share(self) -> float:
        """Of all ballots, those that say yes."""
        return self.n_yes / self.n if self.n else 0.0

    @property
    def says_yes(self) -> bool:
        """Whether a filter lets the row pass: by the threshold, or without one by the majority of all ballots."""
        return 2 * self.n_yes > self.n if self.threshold is None else self.share >= self.threshold

    @property
    def majority(self) -> Majority:
        """Of the valid ballots; as many on either side is a value of its own."""
        return majority(self.n_yes, self.n_no)

    @property
    def agreement(self) -> float:
        """Of the valid ballots, those on the larger side; 1.0 where they all agree."""
        valid = self.n_yes + self.n_no
        return max(self.n_yes, self.n_no) / valid if valid else 0.0

    def __str__(self) -> str:
        said = next((reason for reason in self.reasons if reason), "")
        return f"{self.judge}: {self.n_yes} of {self.n} say yes{f'; {said}' if said else ''}"
