"""A row before it is built: its name is known, its pictures are not drawn yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pipelines.sources.base import SourceRow


class LazyRow(NamedTuple):
    """A row's name, and what builds the row on demand."""

    name: str
    build: Callable[[], SourceRow]
