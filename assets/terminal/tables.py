"""Columns that lose nothing in a narrow terminal."""

from rich.table import Column


def folding(*headers: str) -> list[Column]:
    """Columns of texts whose words are folded, never cut."""
    return [Column(header, overflow="fold") for header in headers]
