"""What a source is: something that yields rows by shard, with images and videos as the bytes they came in.

A source never decodes or judges; intake (``pipelines/intake.py``) turns its rows into samples or rejects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pipelines.records import Truth
from pipelines.rejects import Reason


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row as the source has it. ``row`` names it for a person: ``questions.jsonl:7``, ``train/12``."""

    row: str
    images: tuple[bytes, ...]
    question: str
    answer: str
    choices: tuple[str, ...] = ()
    truth: Truth = Truth()
    category: str = ""
    license: str = ""
    videos: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read: where it is, the typed reason, the evidence, and as much of it as there was."""

    row: str
    reason: Reason
    evidence: str
    content: dict[str, Any]


class Source(Protocol):
    """Rows by shard. Reading a shard twice gives the same rows in the same order."""

    @property
    def name(self) -> str:
        """The source's name, part of its partition keys."""
        ...

    @property
    def n_shards(self) -> int:
        """How many shards there are; shards are numbered from 0."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of all that determines the rows (files and their sizes and times, revision, mapping, seed)."""
        ...

    def rows(self, shard: int) -> Iterator[SourceRow | BadRow]:
        """The rows of one shard, streamed."""
        ...
