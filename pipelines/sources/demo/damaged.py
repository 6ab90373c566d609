"""Files as they arrive when something went wrong: a photograph cut off in the middle and a file without a byte.

Intake must quarantine both; the source only hands them over.
"""

from __future__ import annotations

from functools import partial

from pipelines.sources.base import SourceRow
from pipelines.sources.demo.lazy import LazyRow
from pipelines.sources.demo.material import PHOTOGRAPHS, photograph_bytes


def damaged() -> list[LazyRow]:
    """The two damaged rows."""
    return [LazyRow("damaged/truncated", partial(_truncated, "rocket")), LazyRow("damaged/empty", _empty)]


def _truncated(name: str) -> SourceRow:
    whole = photograph_bytes(name)
    return SourceRow(
        row="damaged/truncated",
        images=(whole[: len(whole) // 2],),
        question="How many floodlights shine at the foot of the rocket?",
        answer="5",
        category="quantity",
        license=PHOTOGRAPHS[name].license,
    )


def _empty() -> SourceRow:
    return SourceRow(
        row="damaged/empty",
        images=(b"",),
        question="What is shown on this picture?",
        answer="a bicycle",
        category="object",
    )
