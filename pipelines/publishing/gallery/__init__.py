"""The gallery: trajectories and rejects as one page, with every image, thought and piece of code."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pygments.formatters import HtmlFormatter

from pipelines.generation.engine import STAGES
from pipelines.generation.stage import SAMPLES
from pipelines.publishing.dataset_reader import count_rows, map_in_threads, read_rows
from pipelines.publishing.gallery.entries import Entry, entry_of_reject, entry_of_row
from pipelines.publishing.html_page import data_url, embedded_json, html_page
from pipelines.publishing.sft_dataset import ASSET
from pipelines.publishing.templates import render
from pipelines.records import Reject, Sample
from pipelines.storage.atomic_write import write_whole
from pipelines.storage.images import ImageStore
from pipelines.storage.stage import Progress
from pipelines.storage.tables import TableKey, Tables
from pipelines.storage.workspace import Workspace

INLINE_BYTES = 24 << 20
"""The most that a page holds of images: a browser reads that at once, and a mail or an issue takes it."""
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class GalleryPage:
    """A page that was written. ``folder`` holds its images where they are not in the page itself."""

    page: Path
    n_rows: int
    n_rejects: int
    folder: Path | None


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """Rejects to show, each with its sample where it has one, and the store with their images."""

    rows: Sequence[tuple[Reject, Sample | None]]
    store: ImageStore


def read_rejects(workspace: Workspace, families: Sequence[str] | None = None) -> RejectedRows:
    """The rejects of ``families`` (None: of every one, and of intake) by stage, over all partitions."""
    tables = workspace.tables
    samples = {sample.sample_id: sample for key in tables.keys(SAMPLES) for sample in tables.read(key, Sample)}
    rejects = [reject for key in _reject_keys(tables, families) for reject in tables.read_rejects(key)]
    return RejectedRows([(reject, samples.get(reject.sample_id)) for reject in rejects], workspace.images)


def write_gallery(
    page: Path,
    folders: Sequence[Path],
    *,
    title: str,
    rejected: RejectedRows | None = None,
    limit: int | None = None,
    inline_bytes: int = INLINE_BYTES,
    progress: Progress | None = None,
) -> GalleryPage:
    """Writes the datasets in ``folders`` (at most ``limit`` rows of each) and the rejects as a page.

    Images of more than ``inline_bytes`` altogether go to ``<page>_files`` beside it. The page is replaced whole.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    images, contents = _PageImages(page, inline_bytes), []
    n_rows, n_rejects = count_rows(folders, limit=limit), len(rejected.rows) if rejected else 0
    for entry in _entries(folders, limit, rejected):
        images.add(entry.images)
        contents.append(entry.content)
        if progress is not None:
            progress(len(contents), n_rows + n_rejects)
    write_whole(page, _render(title, contents, images.addresses()).encode(errors="replace"))
    images.discard_others()
    return GalleryPage(page, n_rows, n_rejects, None if images.is_inline else images.folder)


def _entries(folders: Sequence[Path], limit: int | None, rejected: RejectedRows | None) -> Iterator[Entry]:
    n_threads = os.cpu_count() or 1
    shipped: Iterable[Entry] = map_in_threads(read_rows(folders, limit=limit), entry_of_row, n_threads=n_threads)
    if rejected is None:
        return iter(shipped)
    store = rejected.store
    rejects = map_in_threads(rejected.rows, lambda pair: entry_of_reject(*pair, store), n_threads=n_threads)
    return chain(shipped, rejects)


def _render(title: str, contents: Sequence[Any], images: Mapping[str, str]) -> str:
    data = {"entries": embedded_json("entries", contents), "images": embedded_json("images", images)}
    body = render("gallery/gallery.html.jinja", title=title, **data)
    return html_page(
        Markup(body),
        title=f"{title}: gallery",
        style=(_HERE / "gallery.css").read_text(encoding="utf-8")
        + HtmlFormatter(style="friendly").get_style_defs(".code"),
        script=(_HERE / "gallery.js").read_text(encoding="utf-8"),
    )


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
