"""MinHash signatures and their bands: sets that are alike meet in at least one band (Broder, 1997).

How many rows a band has follows from the threshold: as many as leave a pair at the threshold a chance of at most one in
a thousand of not meeting. Meeting proves nothing; whoever uses this compares the sets themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Signature = NDArray[np.uint64]

N_HASHES = 128
_MISSED = 1e-3
_SEED = 20261121
_PRIME = np.uint64((1 << 31) - 1)
"""Mersenne; a product of two residues fits into 64 bits."""


def _coefficients() -> tuple[Signature, Signature]:
    rng = np.random.default_rng(_SEED)
    factors = rng.integers(1, int(_PRIME), N_HASHES, dtype=np.uint64)
    offsets = rng.integers(0, int(_PRIME), N_HASHES, dtype=np.uint64)
    return factors, offsets


_FACTORS, _OFFSETS = _coefficients()


def stable_hash(text: str) -> int:
    """64 bits that are the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def signature(of: Iterable[int]) -> Signature:
    """The least values of ``N_HASHES`` permutations over a set of hashes that is not empty."""
    members = np.fromiter(of, np.uint64) % _PRIME
    least: Signature = ((members[:, None] * _FACTORS + _OFFSETS) % _PRIME).min(axis=0)
    return least


def bands(of: Signature, *, threshold: float) -> list[bytes]:
    """The bands of a signature; those of two sets are compared place by place."""
    rows = rows_per_band(threshold)
    return [of[start : start + rows].tobytes() for start in range(0, N_HASHES - rows + 1, rows)]


def rows_per_band(threshold: float) -> int:
    """The most rows per band with which a pair at the threshold is missed at most once in a thousand."""
    allowed = [rows for rows in range(1, N_HASHES + 1) if (1 - threshold**rows) ** (N_HASHES // rows) <= _MISSED]
    return max(allowed, default=1)
