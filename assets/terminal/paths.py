"""Paths as the terminal shows them."""

from pathlib import Path

from pipelines.storage.places import Place


def relative(place: Place | str) -> str:
    """As one types it: from the current folder on where it lies below it."""
    path = Path(str(place))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(place)
