"""The gallery: trajectories and rejects as one page, with every image, thought and piece of code."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.gallery.entries import Entry, RejectedRows, entry_of_reject, entry_of_row
from darkroom.pipelines.inspection.gallery.page import INLINE_BYTES, write_entries
from darkroom.pipelines.publishing.dataset_reader import count_rows, map_in_threads, read_rows
from darkroom.pipelines.publishing.sft_dataset import ASSET
from darkroom.pipelines.records import Reject, Sample
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.storage.row_files import KeyedSpill, RowStream
from darkroom.pipelines.storage.stage_runs import Progress
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace


@dataclass(frozen=True, slots=True)
class GalleryPage:
    """A written page. ``folder`` holds its images if they are not in the page itself."""

    page: Path
    n_rows: int
    n_rejects: int
    n_not_applicable: int
    folder: Path | None


def read_rejects(workspace: Workspace, families: Sequence[str] | None = None) -> RejectedRows:
    """Read the rejects of ``families`` (None: all, and those of intake) by stage, over all partitions."""
    tables, keys = workspace.tables, list(_reject_keys(workspace.tables, families))
    state = [[str(key), tables.rejects_path(key).stat().st_mtime] for key in keys]
    n_not_applicable = sum(tables.facts(key)["n_not_applicable"] for key in keys)

    def read() -> Iterator[tuple[Reject, Sample | None]]:
        samples = _SamplesOf(tables, (reject for key in keys for reject in tables.stream_rejects(key)))
        for key in keys:
            yield from ((reject, samples.get(reject.sample_id)) for reject in tables.stream_rejects(key))

    rows = RowStream(sum(map(tables.n_rejects, keys)), read)
    return RejectedRows(rows, workspace.images, state, n_not_applicable)


class _SamplesOf:
    """Samples of rejects, on disk; if several partitions hold one, the last partition's."""

    def __init__(self, tables: Tables, rejects: Iterable[Reject]) -> None:
        self._spill = KeyedSpill(tables.scratch)
        sample_keys = {key64(reject.sample_id) for reject in rejects if reject.sample_id}
        for key in tables.keys(SAMPLES) if sample_keys else ():
            ids = (sample_id for (sample_id,) in tables.columns(key, "sample_id"))
            mask = np.fromiter((key64(sample_id) in sample_keys for sample_id in ids), np.bool_)
            for sample in tables.stream(key, Sample, mask=mask) if mask.any() else ():
                self._spill.add(key64(sample.sample_id), sample)

    def get(self, sample_id: str) -> Sample | None:
        sample: Sample | None = self._spill.get(key64(sample_id))
        return sample


def write_gallery(
    page: Path,
    folders: Sequence[StorePath],
    *,
    title: str,
    rejected: RejectedRows | None = None,
    limit: int | None = None,
    inline_bytes: int = INLINE_BYTES,
    progress: Progress | None = None,
) -> GalleryPage:
    """Write the datasets in ``folders`` (at most ``limit`` rows of each) and the rejects as a page."""
    n_rows, n_rejects = count_rows(folders, limit=limit), len(rejected.rows) if rejected else 0
    n_not_applicable = rejected.n_not_applicable if rejected else 0

    def entries() -> Iterator[Entry]:
        for number, entry in enumerate(_entries(folders, limit, rejected), 1):
            yield entry
            if progress is not None:
                progress(number, n_rows + n_rejects)

    images = write_entries(page, entries(), title=title, inline_bytes=inline_bytes)
    return GalleryPage(page, n_rows, n_rejects - n_not_applicable, n_not_applicable, images)


def _entries(folders: Sequence[StorePath], limit: int | None, rejected: RejectedRows | None) -> Iterator[Entry]:
    shipped = map_in_threads(read_rows(folders, limit=limit), entry_of_row)
    if rejected is None:
        return shipped
    store = rejected.store
    rejects = map_in_threads(rejected.rows, lambda pair: entry_of_reject(*pair, store))
    return chain(shipped, rejects)


def _reject_keys(tables: Tables, families: Sequence[str] | None) -> Iterator[TableKey]:
    if families is None:
        yield from tables.keys(SAMPLES)
        families = tables.families()
    for family in families:
        for stage in STAGES:
            yield from tables.keys((family, stage))
        yield from (key for key in tables.keys(ASSET) if key.partition == family)
