"""The marker of a shipped folder: that it was written whole, and from what."""

from __future__ import annotations

import json
from pathlib import Path

from pipelines.digest import digest_bytes
from pipelines.export import Shipped

_NAME = ".darkroom.json"  # a hidden file: `datasets` must not take it for data
_CARD = "README.md"


def read_marker(folder: Path, inputs: str) -> Shipped | None:
    """What lies in ``folder``, if it was written whole from the same ``inputs`` and its card is as it was written."""
    marker, card = folder / _NAME, folder / _CARD
    if not marker.exists():
        return None
    facts = json.loads(marker.read_text())
    if facts["inputs"] != inputs or not any(folder.glob("*.parquet")) or not card.exists():
        return None
    if digest_bytes(card.read_bytes()) != facts["card"]:
        return None
    return Shipped(folder, facts["n_rows"], facts["n_images"], facts["n_bytes"])


def remove_marker(folder: Path) -> None:
    """Says that the folder is being written."""
    (folder / _NAME).unlink(missing_ok=True)


def write_marker(shipped: Shipped, inputs: str, card: str) -> None:
    """Writes the card, then that all of it is there."""
    (shipped.folder / _CARD).write_text(card)
    facts = {"inputs": inputs, "n_rows": shipped.n_rows, "n_images": shipped.n_images, "n_bytes": shipped.n_bytes}
    facts["card"] = digest_bytes(card.encode())
    (shipped.folder / _NAME).write_text(json.dumps(facts, sort_keys=True))
