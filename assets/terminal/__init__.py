"""What commands print."""

from pathlib import Path

from rich.table import Column

from pipelines.storage.places import Place


def folding(*headers: str) -> list[Column]:
    """Columns of texts whose words are folded, never cut: a narrow terminal loses nothing."""
    return [Column(header, overflow="fold") for header in headers]


def relative(place: Place | str) -> str:
    """A path as one types it: from the current folder on where it lies below it."""
    path = Path(str(place))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(place)
