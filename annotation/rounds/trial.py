"""The images of a campaign to try out: large ones of the bundled source, which needs no download."""

import io
from collections.abc import Iterator

from PIL import Image

from darkroom.annotation.rounds.campaign import Campaign
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.sources.catalog import EMBEDDED, Catalog
from darkroom.pipelines.storage.atomic_write import write_whole
from darkroom.pipelines.storage.workspace import Workspace

N_IMAGES = 20
FOLDER = "trial"
"""As in ``trial_campaign.yaml``."""


def write_trial_images(workspace: Workspace) -> int:
    """Writes the images, the same ones every time; returns their number."""
    source = Catalog(workspace.sources).open(EMBEDDED)
    rows = (row for shard in range(source.n_shards) for row in source.rows(shard) if isinstance(row, SourceRow))
    images: dict[str, bytes] = {}
    for data in _large_images(rows):
        images.setdefault(digest_bytes(data), data)
        if len(images) == N_IMAGES:
            break
    for number, data in enumerate(images.values(), 1):
        write_whole(workspace.annotation / FOLDER / f"{number:02d}.jpg", data)
    return len(images)


def _large_images(rows: Iterator[SourceRow]) -> Iterator[bytes]:
    """Sound ones for a campaign; the source has small and damaged files as well."""
    for row in rows:
        for data in row.images[:1]:
            try:
                size = Image.open(io.BytesIO(data)).size
            except OSError:
                continue
            if max(size) > Campaign().min_side:
                yield data
