"""The gallery: trajectories and rejects as one page, with every image, thought and piece of code."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from uuid import uuid4

import numpy as np

from darkroom.pipelines.generation.engine import STAGES
from darkroom.pipelines.generation.stage import SAMPLES
from darkroom.pipelines.inspection.gallery.entries import Entry, RejectedRows, entry_of_reject, entry_of_row
from darkroom.pipelines.inspection.gallery.shell import gallery_page
from darkroom.pipelines.inspection.html_page import data_url, embedded_json, embedded_text, json_text
from darkroom.pipelines.publishing.dataset_reader import count_rows, map_in_threads, read_rows
from darkroom.pipelines.publishing.sft_dataset import ASSET
from darkroom.pipelines.records import Reject, Sample
from darkroom.pipelines.records.digest import key64
from darkroom.pipelines.storage.atomic_write import whole_file
from darkroom.pipelines.storage.row_files import KeyedSpill, RowStream
from darkroom.pipelines.storage.stage import Progress
from darkroom.pipelines.storage.store_paths import StorePath
from darkroom.pipelines.storage.tables import TableKey, Tables
from darkroom.pipelines.storage.workspace import Workspace

INLINE_BYTES = 24 << 20
"""The most that a page holds of images: a browser reads that at once, and a mail or an issue takes it."""
_ENTRIES = f"entries {uuid4().hex}"


@dataclass(frozen=True, slots=True)
class GalleryPage:
    """A page that was written. ``folder`` holds its images where they are not in the page itself."""

    page: Path
    n_rows: int
    n_rejects: int
    folder: Path | None


def read_rejects(workspace: Workspace, families: Sequence[str] | None = None) -> RejectedRows:
    """The rejects of ``families`` (None: of every one, and of intake) by stage, over all partitions."""
    tables, keys = workspace.tables, list(_reject_keys(workspace.tables, families))
    state = [[str(key), tables.rejects_path(key).stat().st_mtime] for key in keys]
    n_rejects = sum(map(tables.n_rejects, keys))

    def read() -> Iterator[tuple[Reject, Sample | None]]:
        samples = _SamplesOf(tables, (reject for key in keys for reject in tables.stream_rejects(key)))
        for key in keys:
            yield from ((reject, samples.get(reject.sample_id)) for reject in tables.stream_rejects(key))

    return RejectedRows(RowStream(n_rejects, read), workspace.images, state)


class _SamplesOf:
    """The samples of rejects, on disk; of one that several partitions hold the last one's."""

    def __init__(self, tables: Tables, rejects: Iterable[Reject]) -> None:
        self._spill = KeyedSpill(tables.scratch)
        wanted = {key64(reject.sample_id) for reject in rejects if reject.sample_id}
        for key in tables.keys(SAMPLES) if wanted else ():
            ids = (sample_id for (sample_id,) in tables.columns(key, "sample_id"))
            mask = np.fromiter((key64(sample_id) in wanted for sample_id in ids), np.bool_)
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
    """Writes the datasets in ``folders`` (at most ``limit`` rows of each) and the rejects as a page.

    Images of more than ``inline_bytes`` altogether go to ``<page>_files`` beside it. The page is replaced whole. Rows
    wait on disk until it is written.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    images = _PageImages(page, inline_bytes)
    n_rows, n_rejects = count_rows(folders, limit=limit), len(rejected.rows) if rejected else 0
    with tempfile.TemporaryFile(dir=page.parent) as contents:
        for number, entry in enumerate(_entries(folders, limit, rejected), 1):
            images.add(entry.images)
            contents.write((("," if number > 1 else "") + json_text(entry.content)).encode(errors="replace"))
            if progress is not None:
                progress(number, n_rows + n_rejects)
        contents.seek(0)
        with whole_file(page) as part, part.open("wb") as file:
            before, after = _render(title, images.addresses()).encode(errors="replace").split(_ENTRIES.encode())
            file.write(before)
            shutil.copyfileobj(contents, file)
            file.write(after)
    images.discard_others()
    return GalleryPage(page, n_rows, n_rejects, None if images.is_inline else images.folder)


def _entries(folders: Sequence[StorePath], limit: int | None, rejected: RejectedRows | None) -> Iterator[Entry]:
    shipped = map_in_threads(read_rows(folders, limit=limit), entry_of_row)
    if rejected is None:
        return shipped
    store = rejected.store
    rejects = map_in_threads(rejected.rows, lambda pair: entry_of_reject(*pair, store))
    return chain(shipped, rejects)


def _render(title: str, images: Mapping[str, str]) -> str:
    """The page with ``_ENTRIES`` where its entries belong."""
    data = (embedded_text("entries", f"[{_ENTRIES}]"), embedded_json("images", images))
    return gallery_page(title, data, "gallery.js")


class _PageImages:
    """The images of a page by name, each once: in the page itself, or beside it when they are too many for one file."""

    def __init__(self, page: Path, inline_bytes: int) -> None:
        self.folder = page.with_name(f"{page.stem}_files")
        self._inline_bytes, self._n_bytes = inline_bytes, 0
        self._inline: dict[str, bytes] = {}
        self._names: set[str] = set()

    @property
    def is_inline(self) -> bool:
        """Whether the page holds its images itself."""
        return self._n_bytes <= self._inline_bytes

    def add(self, images: Mapping[str, bytes]) -> None:
        """Beyond the bound, images go to the folder, and the earlier ones with them."""
        for name, data in images.items():
            if name not in self._names:
                self._names.add(name)
                self._inline[name] = data
                self._n_bytes += len(data)
        if not self.is_inline:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, data in self._inline.items():
                (self.folder / name).write_bytes(data)
            self._inline.clear()

    def addresses(self) -> dict[str, str]:
        """A data URL for each image, or its path from the page."""
        if not self.is_inline:
            return {name: f"{self.folder.name}/{name}" for name in sorted(self._names)}
        return {name: data_url(data, "image/jpeg") for name, data in self._inline.items()}

    def discard_others(self) -> None:
        """Removes the files of an earlier page from the folder."""
        for path in self.folder.glob("*.jpg"):
            if self.is_inline or path.name not in self._names:
                path.unlink()
        if self.is_inline and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


def _reject_keys(tables: Tables, families: Sequence[str] | None) -> Iterator[TableKey]:
    if families is None:
        yield from tables.keys(SAMPLES)
        families = tables.families()
    for family in families:
        for stage in STAGES:
            yield from tables.keys((family, stage))
        yield from (key for key in tables.keys(ASSET) if key.partition == family)
