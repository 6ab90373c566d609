"""Rows that intake must set aside: two that are there already, and one whose picture is cut off in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pipelines.sources.base import SourceRow
from pipelines.sources.demo.lazy import LazyRow


def spoiled(rows: Sequence[LazyRow]) -> list[LazyRow]:
    """Copies of the first and the last of ``rows``, and the last with half of its picture."""
    first, last = rows[0], rows[-1]
    return [
        LazyRow("copy/00", partial(_again, "copy/00", first)),
        LazyRow("copy/01", partial(_again, "copy/01", last)),
        LazyRow("cut/00", partial(_cut, "cut/00", last)),
    ]


def _again(name: str, row: LazyRow) -> SourceRow:
    return replace(row.build(), row=name)


def _cut(name: str, row: LazyRow) -> SourceRow:
    whole = row.build()
    (image,) = whole.images
    return replace(whole, row=name, images=(image[: len(image) // 2],))
