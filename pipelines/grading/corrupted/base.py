"""What a corrupted answer is."""

from __future__ import annotations

from typing import NamedTuple


class Corruption(NamedTuple):
    """A wrong answer. ``kind`` says in which way it is wrong."""

    kind: str
    text: str
