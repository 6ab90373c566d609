"""A row before it is built: its name is known, its pictures are not drawn yet."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from pipelines.rejects import Reason
from pipelines.sources.base import BadRow, SourceRow
from pipelines.sources.demo.material import MaterialError


class LazyRow(NamedTuple):
    """A row's name, and what builds the row on demand."""

    name: str
    build: Callable[[], SourceRow]


def built(row: LazyRow) -> SourceRow | BadRow:
    """The row; one whose material is not installed says so."""
    try:
        return row.build()
    except MaterialError as error:
        return BadRow(row.name, Reason.MATERIAL_MISSING, str(error), {})


def installed(package: str) -> str:
    """The version of a package whose files or code determine the rows' bytes."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
