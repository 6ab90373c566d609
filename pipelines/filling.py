"""Filling a quota: how many samples to draft next, so that as many rows are accepted and little is paid beyond.

The first time as many are drafted as rows are wanted; then as many more as the yield so far lets expect. Everything
that was drafted before stays, so a larger number pays for the difference alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Yield:
    """What became of a family's partition: ``n_most`` samples were to be drafted, ``n_drafted`` could be."""

    n_most: int
    n_drafted: int
    n_accepted: int

    @property
    def is_exhausted(self) -> bool:
        """Whether there is no further sample to draft."""
        return self.n_drafted < self.n_most


def next_limit(n_wanted: int, so_far: Yield | None) -> int | None:
    """How many samples of the partition to draft in all; None when it is filled or exhausted."""
    if so_far is None:
        return n_wanted
    missing = n_wanted - so_far.n_accepted
    if missing <= 0 or so_far.is_exhausted:
        return None
    accepted_share = max(so_far.n_accepted, 1) / max(so_far.n_drafted, 1)
    return so_far.n_drafted + math.ceil(missing / accepted_share)
